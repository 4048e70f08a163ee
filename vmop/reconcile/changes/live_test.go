package changes_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
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
	"spec.vm.display.tls.", // the pod has the certificate of either at the same place
}

// sameToTheRunner are changes that may leave the configuration as it is: what is
// written becomes what is the default there, or a device has the size of its
// volume.
func sameToTheRunner(c changes.Change) bool {
	switch {
	case slices.ContainsFunc(around, func(f string) bool { return strings.HasPrefix(c.Path, f) }),
		strings.HasPrefix(c.Path, "spec.cloudInit.metaData["),
		strings.HasSuffix(c.Path, ".hostAddress"),
		// A reference without one has a place all the same.
		strings.HasSuffix(c.Path, ".bootOrder"),
		strings.HasSuffix(c.Path, ".requests[storage]"),
		// It is in a file, whose content the runner compares when it reads it.
		c.Path == "spec.provisioning.userData",
		c.Path == "spec.vm.shares" && reflect.DeepEqual(folders(c.OldValue), folders(c.NewValue)),
		// No user data are empty ones.
		c.Path == "spec.cloudInit.userData" && string(c.OldValue)+string(c.NewValue) == "{}":
		return true
	}
	return false
}

// folders are shares without what only the pod, or a guest with a seed, has of them: the
// claims, and the places where they are mounted.
func folders(shares json.RawMessage) []spec.Share {
	var out []spec.Share
	if json.Unmarshal(shares, &out) != nil {
		return nil
	}
	for i := range out {
		out[i].PersistentVolumeClaim, out[i].MountPoint = nil, ""
	}
	return out
}

// TestOneTableOfWhatIsLive holds the operator's list of what waits for a restart
// and what the runner reports of it to each other, for any two manifests: each field of
// the one is in the other.
func TestOneTableOfWhatIsLive(t *testing.T) { rapid.Check(t, checkOneTable) }

func FuzzOneTableOfWhatIsLive(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkOneTable)) }

func checkOneTable(t *rapid.T) {
	old, new := similar(t)
	// The claims that there are keep what they were made with.
	modes := map[string]corev1.PersistentVolumeMode{}
	for _, d := range machineconfig.Disks(old) {
		if d.Claim != "" {
			modes[d.Claim] = d.VolumeMode(nil)
		}
	}
	a, okA := configuration(old, modes)
	b, okB := configuration(new, modes)
	if !okA || !okB {
		t.Skip("no configuration")
	}
	paths := live.RestartPaths(&a, &b)
	all := changes.Between(old, new, changes.Options{})
	moved := len(old.Spec.VM.Disks) != len(new.Spec.VM.Disks)
	var wait []changes.Change
	for _, c := range all {
		if c.Applied != changes.AppliedRestart {
			continue
		}
		wait = append(wait, c)
		if !sameToTheRunner(c) && !slices.ContainsFunc(paths, func(path string) bool { return shows(c.Path, path, len(old.Spec.VM.Disks), moved) }) {
			t.Errorf("the operator says that %v waits for a restart, and the runner reports %q", c, paths)
		}
	}
	for _, path := range paths {
		if !slices.ContainsFunc(wait, func(c changes.Change) bool { return shows(c.Path, path, len(old.Spec.VM.Disks), moved) }) {
			t.Errorf("the runner waits for a restart because of %s, and the operator knows of %v", path, all)
		}
	}
}

// inConfiguration is where fields of a manifest are in the runner's configuration, if not
// under the same name. The first that fits counts.
var inConfiguration = []struct {
	field string
	keys  []string
}{
	{"spec.runnerTemplate.source", []string{"template"}},
	{"spec.runnerTemplate.update", []string{"updateTemplate"}},
	{"spec.provisioning", []string{"cloudInit", "sysprep"}},
	{"spec.vm.machineUuid", []string{"vm.uuid"}},
	{"spec.vm.cpuTopology", []string{"vm.sockets", "vm.diesPerSocket", "vm.coresPerDie", "vm.threadsPerCore"}},
	{"spec.vm.serial.enabled", []string{"vm.serial"}},
	{"spec.vm.display.spice.streamingVideo", []string{"vm.display.spice.streaming-video"}},
	{"spec.vm.display.vnc.unixSocket", []string{"vm.display.vnc.socket", "vm.display.vnc.port", "vm.display.vnc.address"}},
	// A server without a password listens elsewhere.
	{"spec.vm.display.spice.generateSecret", []string{"vm.display.spice"}},
	{"spec.vm.display.vnc.generateSecret", []string{"vm.display.vnc"}},
	// Where there are none elsewhere, there are empty ones.
	{"spec.cloudInit.userDataFrom", []string{"cloudInit.userDataFrom", "cloudInit.userData"}},
	// The guest of a machine with a seed is told where to mount them.
	{"spec.vm.shares", []string{"vm.shares", "cloudInit.userData"}},
	{"spec.vm.networks", []string{"vm.network"}},
	{"spec.vm.disks", []string{"vm.drives"}},
}

// shows reports whether a key of the runner's configuration has a field of the manifest,
// or a part of it, or is a part of what has it. Drives are the machine's disks, of which
// there were so many, and behind them those that it refers to. Where the disks have become
// more or fewer, those behind have moved.
func shows(field, key string, disks int, moved bool) bool {
	order := strings.HasSuffix(field, ".bootindex") || strings.HasSuffix(field, ".bootOrder")
	if rest, is := strings.CutPrefix(field, "spec.blockDeviceRefs["); is {
		index, rest, _ := strings.Cut(rest, "]")
		n, _ := strconv.Atoi(index)
		field = fmt.Sprintf("spec.vm.disks[%d]%s", disks+n, rest)
	}
	if drive, below, is := driveOf(key); is && strings.HasPrefix(field, "spec.vm.disks[") {
		changed, of, _ := driveOf("vm.drives" + strings.TrimPrefix(field, "spec.vm.disks"))
		if below == ".bootindex" {
			// References are in an order that depends on all that are numbered.
			return order || of == ""
		}
		return !order && (moved || changed == drive)
	}
	for _, kind := range []string{".tap", ".user"} {
		if at := strings.Index(field, "]"+kind+"."); at > 0 && strings.HasPrefix(field, "spec.vm.networks[") {
			field = field[:at+1] + field[at+1+len(kind):]
		}
	}
	field = strings.NewReplacer("From.secretRef.name", "From.secret", "From.secretRef.key", "From.key").Replace(field)
	keys := []string{strings.TrimPrefix(field, "spec.")}
	for _, i := range inConfiguration {
		if rest, is := strings.CutPrefix(field, i.field); is {
			keys = nil
			for _, k := range i.keys {
				if len(i.keys) == 1 {
					k += rest
				}
				keys = append(keys, k)
			}
			break
		}
	}
	return slices.ContainsFunc(keys, func(k string) bool { return within(k, key) || within(key, k) })
}

// driveOf takes the key of a drive apart: its number, and what is below it.
func driveOf(key string) (drive, below string, is bool) {
	rest, is := strings.CutPrefix(key, "vm.drives[")
	drive, below, _ = strings.Cut(rest, "]")
	return drive, below, is
}

// within reports whether a path is another one, or below it.
func within(path, other string) bool {
	rest, is := strings.CutPrefix(path, other)
	return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
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

func configuration(vm *spec.VirtualMachine, modes map[string]corev1.PersistentVolumeMode) (runnerconfig.Config, bool) {
	c, err := machineconfig.ForCluster(vm, machineconfig.Options{VolumeModes: modes})
	if err != nil {
		return c, false
	}
	runnerconfig.Default(&c)
	return c, true
}
