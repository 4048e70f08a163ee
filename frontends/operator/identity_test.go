package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An operator in a pod is known by its account, any other by its host.
func TestIdentity(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	for _, c := range []struct{ payload, want string }{
		{`{"sub":"system:serviceaccount:vmop-system:vmop-operator"}`, "vmop-system/vmop-operator"},
		{`{"sub":"ann"}`, "host/"},
		{`{`, "host/"},
	} {
		text := "header." + base64.RawURLEncoding.EncodeToString([]byte(c.payload)) + ".signature"
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := identity(token); !strings.HasPrefix(got, c.want) || strings.Contains(got, " ") {
			t.Errorf("%s is %q", c.payload, got)
		}
	}
	if got := identity(filepath.Join(t.TempDir(), "none")); !strings.HasPrefix(got, "host/") {
		t.Errorf("without a token it is %q", got)
	}
}

// Who gives an operator a name gives one that fits into messages, and none that means
// another.
func TestGivenIdentity(t *testing.T) {
	for name, valid := range map[string]bool{
		"team/vmop-operator": true, "a": true, "": false, "two words": false, "VM-Operator": false,
		strings.Repeat("a", maxIdentity): true, strings.Repeat("a", maxIdentity+1): false, "ä": false, "a\n": false,
	} {
		if err := validIdentity(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}
