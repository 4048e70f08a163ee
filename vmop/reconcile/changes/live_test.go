package changes_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// around are the fields whose changes wait for the next pod and are not in the
// runner's configuration: they are about what is around the machine.
var around = []string{
	"spec.image", "spec.resources", "spec.virtualMachineClassName", "spec.coreFraction", "spec.nodeName", "spec.nodeSelector", "spec.affinity", "spec.tolerations", "spec.topologySpreadConstraints", "spec.priorityClassName", "spec.loggingProperties",
	"spec.vm.display.spice.generateSecret", "spec.vm.display.vnc.generateSecret",
}

// sameToTheRunner are changes that may leave the configuration as it is: what is
// written becomes what is the default there, or a device has the size of its
// volume.
func sameToTheRunner(c changes.Change) bool {
	switch {
	case slices.ContainsFunc(around, func(f string) bool { return strings.HasPrefix(c.Path, f) }),
		strings.HasPrefix(c.Path, "spec.cloudInit.metaData["),
		strings.HasSuffix(c.Path, ".hostAddress"),
		strings.HasSuffix(c.Path, ".requests[storage]"),
		// No user data are empty ones.
		c.Path == "spec.cloudInit.userData" && string(c.OldValue)+string(c.NewValue) == "{}":
		return true
	}
	return false
}

// TestOneTableOfWhatIsLive holds the operator's list of what waits for a restart
// and what the runner reports of it to each other, for any two manifests.
func TestOneTableOfWhatIsLive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := similar(t)
		a, okA := configuration(old)
		b, okB := configuration(new)
		if !okA || !okB {
			t.Skip("no configuration")
		}
		paths := live.RestartPaths(&a, &b)
		var wait, shown []changes.Change
		for _, c := range changes.Between(old, new, changes.Options{}) {
			if c.Applied != changes.AppliedRestart {
				continue
			}
			wait = append(wait, c)
			if !sameToTheRunner(c) {
				shown = append(shown, c)
			}
		}
		if len(paths) > 0 && len(wait) == 0 {
			t.Errorf("the runner waits for a restart because of %v, and the operator knows of none: %v", paths, changes.Between(old, new, changes.Options{}))
		}
		if len(shown) > 0 && len(paths) == 0 {
			t.Errorf("the operator says that %v waits for a restart, and the runner reports none", shown)
		}
	})
}

// similar draws two manifests that differ in few places, so that nothing hides
// behind other changes.
func similar(t *rapid.T) (a, b *spec.VirtualMachine) {
	a, other := twoManifests(t)
	b = a.DeepCopy()
	from, to := reflect.ValueOf(&other.Spec).Elem(), reflect.ValueOf(&b.Spec).Elem()
	if rapid.Bool().Draw(t, "machine") {
		from, to = reflect.ValueOf(&other.Spec.VM).Elem(), reflect.ValueOf(&b.Spec.VM).Elem()
	}
	if i := rapid.IntRange(-1, from.NumField()-1).Draw(t, "field"); i >= 0 {
		to.Field(i).Set(from.Field(i))
	}
	if b.Spec.CloudInit != nil && b.Spec.Provisioning != nil { // there is one of them
		b.Spec.CloudInit = nil
	}
	for i := range b.Spec.VM.Disks {
		template := b.Spec.VM.Disks[i].VolumeClaimTemplate
		if template != nil && rapid.Bool().Draw(t, "resize") {
			// It may be shared with the other machine.
			template = template.DeepCopy()
			size := resource.NewQuantity(int64(rapid.IntRange(1, 4).Draw(t, "GiB"))<<30, resource.BinarySI)
			template.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *size}
			b.Spec.VM.Disks[i].VolumeClaimTemplate = template
		}
	}
	return a, b
}

func configuration(vm *spec.VirtualMachine) (runnerconfig.Config, bool) {
	c, err := machineconfig.ForCluster(vm, machineconfig.Options{})
	if err != nil {
		return c, false
	}
	runnerconfig.Default(&c)
	return c, true
}
