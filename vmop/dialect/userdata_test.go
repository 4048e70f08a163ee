package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/dialect"
)

// User data that neither spec.provisioning nor spec.cloudInit takes is never left out: it
// is an error, which says what to do.
func TestLongUserDataIsNotLost(t *testing.T) {
	for name, c := range map[string]struct{ begins, want string }{
		"several parts":   {"Content-Type: multipart/mixed", "spec.cloudInit, which takes more, is for what begins with #cloud-config or is a script"},
		"other files":     {"#include", "spec.cloudInit, which takes more, is for what begins with #cloud-config or is a script"},
		"YAML with a tab": {"#cloud-config\n        a:\n        \tb: c", "spec.cloudInit, which takes more, is for YAML that can be read ("},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("apiVersion: virtualization.deckhouse.io/v1alpha2\nkind: VirtualMachine\nmetadata: {name: a}\nspec:\n"+
				"  cpu: {cores: 1}\n  memory: {size: 1Gi}\n  provisioning:\n    type: UserData\n    userData: |\n      %s\n      x: %s\n",
				strings.ReplaceAll(c.begins, "\n        ", "\n      "), strings.Repeat("é", 1024))
			translated, err := dialect.Translate(load(t, []byte(text)))
			if err == nil || len(translated.Machines) != 0 {
				t.Fatalf("%+v, %v", translated, err)
			}
			for _, want := range []string{"in.yaml:9: VirtualMachine a: spec.provisioning.userData: has ", " bytes, and spec.provisioning takes 2048", c.want, "put it into a Secret, and name that by spec.provisioning.userDataRef"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %v", want, err)
				}
			}
		})
	}
}
