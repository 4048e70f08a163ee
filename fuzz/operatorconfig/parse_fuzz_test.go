package operatorconfig

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/operatorconfig"
)

// FuzzParse reads anything. There is either a configuration that can be used or
// an error that names problems, each in a line of the file, and the same both
// times.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../../vmop/operatorconfig/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal(len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{"", "&a [*a]", "/Manager: &a {/Manager: *a}", "{<<: {/Manager: {clusterName: x}}}", "? [a]\n: b", "/Operator: {concurrency: 0x10, namespaces: [&a x, *a]}", "_: {_: {}}", "!!binary x: 1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, remarks, err := operatorconfig.Parse("config.yaml", data)
		c2, remarks2, err2 := operatorconfig.Parse("config.yaml", data)
		if !reflect.DeepEqual(c, c2) || !reflect.DeepEqual(remarks, remarks2) || (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatal("two times, two results")
		}
		all := append(remarks.Warnings[:len(remarks.Warnings):len(remarks.Warnings)], remarks.Notes...)
		if err != nil {
			var e *operatorconfig.Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("%#v", err)
			}
			if !reflect.DeepEqual(c, operatorconfig.Config{}) {
				t.Fatalf("a configuration beside an error: %+v", c)
			}
			all = append(all, e.Problems...)
		}
		lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029") + strings.Count(string(data), "\u0085") + 1
		for _, p := range all {
			if p.Line < 0 || p.Line > lines || p.Message == "" || strings.Contains(p.String(), "\n") {
				t.Fatalf("%+v of %d lines", p, lines)
			}
		}
		usable(t, c)
	})
}

func usable(t *testing.T, c operatorconfig.Config) {
	for _, factor := range []float64{c.Settings.CPUOvercommit, c.Settings.RAMOvercommit} {
		if !(factor >= 0) || math.IsInf(factor, 0) {
			t.Fatalf("overcommit %v", factor)
		}
	}
	if c.Concurrency < 0 || c.Console.PasswordValidity < 0 {
		t.Fatalf("%+v", c)
	}
	for _, n := range c.Namespaces {
		if n == "" {
			t.Fatal("a namespace without a name")
		}
	}
}
