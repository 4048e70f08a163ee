package qemucmd_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/qemucmd"
	"pgregory.net/rapid"
)

// property is what QEMU makes of one part of an argument.
type property struct {
	Key   string
	Value any // a string from text; as decoded from JSON
}

// fataler is *testing.T and *rapid.T.
type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// readOption reads an option's argument by QEMU's rules.
func readOption(t fataler, o qemucmd.Option) []property {
	t.Helper()
	args := o.Args()
	if len(args) == 1 {
		return nil
	}
	if len(args) != 2 || args[0] != o.Flag {
		t.Fatalf("%q is no option with one argument", args)
	}
	switch {
	case slices.Contains([]string{"-append", "-cpu", "-initrd", "-kernel", "-m", "-uuid"}, o.Flag):
		return []property{{o.HeadKey, args[1]}}
	case o.JSON:
		return readJSON(t, args[1])
	}
	return readKeyValue(o.HeadKey, args[1])
}

// readKeyValue is QEMU's opts_do_parse: a value ends at a comma that is not
// doubled, and the first one may stand without a key.
func readKeyValue(headKey, s string) (all []property) {
	for first := true; s != ""; first = false {
		key := headKey
		equals, comma := strings.IndexByte(s, '='), strings.IndexByte(s, ',')
		if !first || equals >= 0 && (comma < 0 || equals < comma) {
			key, s = s[:equals], s[equals+1:]
		}
		var value strings.Builder
		for s != "" {
			if s[0] == ',' {
				if !strings.HasPrefix(s, ",,") {
					break
				}
				s = s[1:]
			}
			value.WriteByte(s[0])
			s = s[1:]
		}
		s = strings.TrimPrefix(s, ",")
		all = append(all, property{key, value.String()})
	}
	return all
}

// readJSON keeps the order of an object's members, as QEMU's dictionaries do
// not; no order must matter, but no member may be lost.
func readJSON(t fataler, s string) (all []property) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		var value any
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		all = append(all, property{key.(string), value})
	}
	return all
}

// plainValue is what reading gives for a value.
func plainValue(inJSON bool, v qemucmd.Value) any {
	switch v := v.(type) {
	case qemucmd.Str:
		return string(v)
	case qemucmd.Ref:
		return string(v)
	case qemucmd.Bus:
		return string(v)
	case qemucmd.FD:
		return strconv.Itoa(int(v))
	case qemucmd.Int:
		if inJSON {
			return float64(v)
		}
		return v.String()
	case qemucmd.Bool:
		switch {
		case inJSON:
			return bool(v)
		case bool(v):
			return "on"
		}
		return "off"
	case qemucmd.Null:
		return nil
	case qemucmd.List:
		list := []any{}
		for _, e := range v {
			list = append(list, plainValue(inJSON, e))
		}
		return list
	case qemucmd.Object:
		object := map[string]any{}
		for _, p := range v {
			object[p.Key] = plainValue(inJSON, p.Value)
		}
		return object
	}
	panic("unknown kind of value")
}

// values draws values; compound ones only for JSON.
func values(inJSON bool) *rapid.Generator[qemucmd.Value] {
	asValue := func(s string) qemucmd.Value { return qemucmd.Str(s) }
	any := rapid.Custom(func(t *rapid.T) string {
		s := rapid.String().Draw(t, "text")
		if !utf8.ValidString(s) {
			s = strings.ToValidUTF8(s, "?")
		}
		return s
	})
	kinds := []*rapid.Generator[qemucmd.Value]{
		rapid.Map(any, asValue), rapid.Map(text(0, 20, 100), asValue),
		rapid.Map(any, func(s string) qemucmd.Value { return qemucmd.Ref(s) }),
		rapid.Map(any, func(s string) qemucmd.Value { return qemucmd.Bus(s) }),
		rapid.Map(rapid.Int32(), func(n int32) qemucmd.Value { return qemucmd.Int(n) }),
		rapid.Map(rapid.Bool(), func(b bool) qemucmd.Value { return qemucmd.Bool(b) }),
		rapid.Map(rapid.IntRange(3, 1000), func(n int) qemucmd.Value { return qemucmd.FD(n) }),
	}
	if inJSON {
		kinds = append(kinds,
			rapid.Map(rapid.SliceOf(rapid.Map(any, asValue)), func(l []qemucmd.Value) qemucmd.Value { return qemucmd.List(l) }),
			rapid.Map(any, func(s string) qemucmd.Value { return qemucmd.Object{{Key: "str", Value: qemucmd.Str(s)}} }))
	}
	return rapid.OneOf(kinds...)
}

// TestRenderedOptionsReadBack: for any values, reading what is rendered gives
// the values back and no property more.
func TestRenderedOptionsReadBack(t *testing.T) {
	rapid.Check(t, checkReadBack)
}

func checkReadBack(t *rapid.T) {
	inJSON := maybe(t, "json")
	key := rapid.StringMatching(`[a-z][a-z0-9.-]*`)
	o := qemucmd.Option{
		Flag: rapid.SampledFrom([]string{"-device", "-blockdev", "-chardev", "-machine"}).Draw(t, "flag"),
		JSON: inJSON, HeadKey: "driver",
		Head: text(0, 8, 30).Draw(t, "head"),
	}
	idKey := "id"
	if o.Flag == "-blockdev" {
		idKey = "node-name"
	}
	var want []property
	if o.Head != "" {
		want = append(want, property{"driver", o.Head})
	}
	if maybe(t, "has id") {
		o.ID = text(1, 8, 30).Draw(t, "id")
		want = append(want, property{idKey, o.ID})
	}
	for range rapid.IntRange(0, 5).Draw(t, "properties") {
		p := qemucmd.Prop{Key: key.Draw(t, "key"), Value: values(inJSON).Draw(t, "value")}
		o.Props = append(o.Props, p)
		want = append(want, property{p.Key, plainValue(inJSON, p.Value)})
	}
	if diff := cmp.Diff(want, readOption(t, o)); diff != "" {
		t.Fatalf("%q reads differently:\n%s", o.Args(), diff)
	}
}

func FuzzOptions(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkReadBack)) }

// TestShellReadsBack lets a POSIX shell read what Shell writes.
func TestShellReadsBack(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	var want []string
	rapid.Check(t, func(t *rapid.T) {
		if len(want) > 100000 {
			return
		}
		cmd := mustBuild(t, machine(t, imagined()), qemucmd.GenericHost())
		cmd.Executable = text(1, 9, 40).Draw(t, "executable")
		shell := cmd.Shell()
		shell = strings.TrimPrefix(shell, "command ")
		script.WriteString("printf '%s\\n' " + shell)
		want = append(append(want, cmd.Executable), cmd.Args()...)
	})
	sh := exec.Command("sh")
	sh.Stdin = &script
	out, err := sh.Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestShellHasOneOptionPerLine(t *testing.T) {
	cmd := mustBuild(t, small(), qemucmd.GenericHost())
	lines := strings.Split(strings.TrimSuffix(cmd.Shell(), "\n"), "\n")
	options := 0
	for _, g := range cmd.Groups {
		options += len(g.Options)
	}
	if len(lines) != options+1 {
		t.Errorf("%d lines for %d options", len(lines), options)
	}
	for i, line := range lines {
		if continued := strings.HasSuffix(line, ` \`); continued == (i == len(lines)-1) {
			t.Errorf("line %d: %s", i, line)
		}
	}
}

func atoi(t fataler, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return n
}
