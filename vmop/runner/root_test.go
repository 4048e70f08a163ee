package runner

import (
	"strings"
	"testing"
)

// Root is warned, once and of what it means where it is; root of a user namespace is
// nobody outside of it.
func TestRootIsWarned(t *testing.T) {
	const real, rootless = "         0          0 4294967295\n", "         0       1000          1\n         1     100000      65536\n"
	for name, c := range map[string]struct {
		user  int
		uids  string
		inPod bool
		want  string
	}{
		"a user":           {1000, real, false, ""},
		"the pod's user":   {65532, real, true, ""},
		"root on a host":   {0, real, false, "has this host"},
		"root in a pod":    {0, real, true, "runAsUser: 0"},
		"rootless podman":  {0, rootless, true, ""},
		"no user_ns":       {0, "", false, "has this host"},
		"what is no map":   {0, "x", false, "has this host"},
		"root, not mapped": {0, "1 1000 1\n", false, "has this host"},
	} {
		got := rootWarning(c.user, c.uids, c.inPod)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
