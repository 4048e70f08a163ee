package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongUsage(t *testing.T) {
	dir := t.TempDir()
	both := filepath.Join(dir, "both.yaml")
	if err := os.WriteFile(both, []byte(`/Operator: {namespaces: [lab], excludeNamespaces: [prod]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(broken, []byte(`"/Manager/Controller/Reconciler": {cpuOvercommit: many}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--nonsense"}, "See: vm-operator --help"},
		{[]string{"here"}, `unexpected argument "here"`},
		{[]string{"--namespace=Not Valid"}, "Not Valid"},
		{[]string{"--exclude-namespace=Not Valid"}, "Not Valid"},
		{[]string{"--exclude-namespace=a", "--namespace=b", "--namespace=c"}, "here b, c"},
		{[]string{"--config=" + both}, "here lab"},
		{[]string{"--concurrency=0"}, "--concurrency: found 0"},
		{[]string{"--log-format=xml"}, "want text or json"},
		{[]string{"--config=" + filepath.Join(dir, "none.yaml")}, "no such file"},
		{[]string{"--config=" + broken}, "cpuOvercommit"},
		{[]string{"--vm-operator-config=" + broken}, "cpuOvercommit"},
		{[]string{"--vm-operator-config=" + filepath.Join(dir, "none.yaml"), "--config=" + broken}, "cpuOvercommit"}, // it may be missing
		{[]string{"--kubeconfig=" + filepath.Join(dir, "none")}, "kubeconfig"},
	} {
		var stdout, stderr bytes.Buffer
		code := Main(context.Background(), append([]string{"vm-operator"}, test.args...), &stdout, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("%q: exit code %d, %s", test.args, code, &stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, word := range []string{"--version", "version"} {
		var stdout, stderr bytes.Buffer
		if code := Main(context.Background(), []string{"vm-operator", word}, &stdout, &stderr); code != exitOK || !strings.HasPrefix(stdout.String(), "vm-operator ") {
			t.Errorf("exit code %d, %s%s", code, &stdout, &stderr)
		}
	}
}
