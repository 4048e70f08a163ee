package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The table of pools says how many machines there are and how many are free, and many
// changes at once are few writes.
func TestPoolsSayHowManyMachinesAreFree(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	p := newProxy(tt)
	t.start(p.kubeconfig)
	if _, err := t.pools.Create(t.Context(), t.object(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VmPool
metadata: {name: desktops}
spec: {permissions: [{role: all}]}
`), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	table := func(want string) {
		t.Helper()
		t.eventually("the table says "+want, func() error {
			out, err := cluster.Kubectl(t.Context(), "get", "vmpool", "-n", t.namespace, "desktops")
			if err != nil {
				return err
			}
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if !strings.HasPrefix(strings.Join(strings.Fields(lines[0]), " "), "NAME MACHINES FREE USED ") {
				return errors.New(out)
			}
			if has := strings.Fields(lines[len(lines)-1]); strings.Join(has[1:4], " ") != want {
				return errors.New(out)
			}
			return nil
		})
	}
	table("0 0 0")
	p.reset()
	const machines = 20
	begin := time.Now()
	for i := range machines {
		t.create(strings.Replace(machine(fmt.Sprintf("d%02d", i), "Stopped"), "spec:\n", "spec:\n  pools: [desktops]\n", 1))
	}
	table("20 20 0")
	writes := 0
	for _, r := range p.requests() {
		if strings.Contains(r, "vmpools") {
			writes++
		}
	}
	t.Logf("%d writes for %d machines", writes, machines)
	// However slow this machine is: one write in five seconds, less what they round.
	if took := time.Since(begin); writes == 0 || writes > 2+int(took/(4*time.Second)) {
		t.Errorf("%d writes in %v: %q", writes, took, p.requests())
	}
	patch := fmt.Sprintf(`{"status":{"assignment":{"pool":"desktops","user":"ann","lastUsed":%q}}}`, "2126-01-02T03:04:05Z")
	if _, err := t.vms.Patch(t.Context(), "d00", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: names.AssignmentManager}, "status"); err != nil {
		t.Fatal(err)
	}
	table("20 19 1")
	if err := t.vms.Delete(t.Context(), "d01", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	table("19 18 1")
}
