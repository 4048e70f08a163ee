package changes_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// twoManifests generates two manifests of one machine: unrelated ones, or one
// whose parts come from both.
func twoManifests(t *rapid.T) (a, b *spec.VirtualMachine) {
	a = spectest.VirtualMachine().Draw(t, "a")
	b = spectest.VirtualMachine().Draw(t, "b")
	for _, vm := range []*spec.VirtualMachine{a, b} {
		vm.Spec.BlockDeviceRefs = nil // of few names, so that both have one
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, "references") {
			r := spec.BlockDeviceRef{Kind: spec.KindDisk, Name: name}
			if rapid.Bool().Draw(t, "boot order") {
				r.BootOrder = new(rapid.Int32Range(1, 3).Draw(t, "place"))
			}
			vm.Spec.BlockDeviceRefs = append(vm.Spec.BlockDeviceRefs, r)
		}
	}
	if rapid.Bool().Draw(t, "mix") {
		mix(t, reflect.ValueOf(&b.Spec).Elem(), reflect.ValueOf(&a.Spec).Elem())
	}
	b.Name, b.Namespace = a.Name, a.Namespace
	return a, b
}

// mix copies some fields of one value to another, down to the machine's parts.
func mix(t *rapid.T, to, from reflect.Value) {
	for i := range to.NumField() {
		if f := to.Field(i); f.Kind() == reflect.Struct {
			mix(t, f, from.Field(i))
		} else if rapid.Bool().Draw(t, "copy") {
			f.Set(from.Field(i))
		}
	}
}

func TestNoChangesOfTheSameMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "vm")
		other := vm.DeepCopy()
		if rapid.Bool().Draw(t, "defaulted") {
			spec.Default(other)
		}
		if got := changes.Between(vm, other, changes.Options{}); len(got) > 0 {
			t.Errorf("%v", got)
		}
	})
}

func checkChangesMakeTheNewMachine(t *rapid.T) {
	old, new := twoManifests(t)
	o := changes.Options{}
	oldBefore, newBefore := old.DeepCopy(), new.DeepCopy()
	found := changes.Between(old, new, o)
	if !reflect.DeepEqual(old, oldBefore) || !reflect.DeepEqual(new, newBefore) {
		t.Fatal("an argument was changed")
	}
	if again := changes.Between(old, new, o); !reflect.DeepEqual(found, again) {
		t.Fatalf("the second result differs: %v %v", found, again)
	}
	doc := asJSON(t, old)
	for _, c := range found {
		if !slices.Contains([]changes.Applied{changes.AppliedLive, changes.AppliedRestart, changes.AppliedNever}, c.Applied) {
			t.Errorf("%s: applied %q", c.Path, c.Applied)
		}
		if s := c.String(); strings.ContainsAny(s, "\n\x1b") || !strings.Contains(s, string(c.Applied)) {
			t.Errorf("shown as %q", s)
		}
		apply(t, doc, c)
	}
	got := &spec.VirtualMachine{}
	if err := json.Unmarshal(mustJSON(t, doc), got); err != nil {
		t.Fatal(err)
	}
	want := &spec.VirtualMachine{}
	if err := json.Unmarshal(mustJSON(t, asJSON(t, new)), want); err != nil {
		t.Fatal(err)
	}
	canonicalDocuments(t, got)
	canonicalDocuments(t, want)
	if !equality.Semantic.DeepEqual(got, want) {
		t.Fatalf("after %v\n%s", found, cmp.Diff(string(mustJSON(t, want)), string(mustJSON(t, got))))
	}
}

func TestChangesMakeTheNewMachine(t *testing.T) { rapid.Check(t, checkChangesMakeTheNewMachine) }

func FuzzChanges(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkChangesMakeTheNewMachine)) }

func TestChangesBackAreTheReverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := twoManifests(t)
		there := changes.Between(a, b, changes.Options{})
		back := changes.Between(b, a, changes.Options{})
		opposite := map[string]string{"add": "remove", "remove": "add", "replace": "replace"}
		for i := range back {
			c := &back[i]
			c.Operation, c.OldValue, c.NewValue = opposite[c.Operation], c.NewValue, c.OldValue
			c.Reason = ""
		}
		for i := range there {
			there[i].Reason = ""
		}
		for _, l := range [][]changes.Change{there, back} {
			slices.SortFunc(l, func(a, b changes.Change) int { return strings.Compare(a.Path, b.Path) })
			for i := range l {
				// What grows one way would shrink the other.
				if p := l[i].Path; strings.HasSuffix(p, ".requests[storage]") || strings.HasSuffix(p, ".image.size") || strings.HasSuffix(p, ".containerDisk.size") {
					l[i].Applied = ""
				}
			}
		}
		if diff := cmp.Diff(there, back); diff != "" {
			t.Errorf("(-there +back reversed):\n%s", diff)
		}
	})
}

// asJSON is the specification and the metadata of a machine with its defaults,
// as the API server would store them: false and 0 are written where the Go
// types leave them out.
func asJSON(t *rapid.T, vm *spec.VirtualMachine) map[string]any {
	vm = vm.DeepCopy()
	spec.Default(vm)
	vm.Status = spec.VirtualMachineStatus{}
	var doc map[string]any
	dec := json.NewDecoder(strings.NewReader(string(mustJSON(t, vm))))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	s := doc["spec"].(map[string]any)
	set := func(m any, key string, zero any) {
		if m, ok := m.(map[string]any); ok && m[key] == nil {
			m[key] = zero
		}
	}
	set(s, "guestShutdownStops", false)
	set(s["vm"], "useTpm", false)
	set(s["vm"], "bootMenu", false)
	for _, key := range []string{"sockets", "diesPerSocket", "coresPerDie", "threadsPerCore"} {
		set(s["vm"].(map[string]any)["cpuTopology"], key, json.Number("0"))
	}
	if disks, ok := s["vm"].(map[string]any)["disks"].([]any); ok {
		for _, disk := range disks {
			set(disk.(map[string]any)["containerDisk"], "persistent", false)
		}
	}
	set(s["vm"].(map[string]any)["display"].(map[string]any)["vnc"], "unixSocket", false)
	set(s["vm"].(map[string]any)["display"].(map[string]any)["tls"], "generateSecret", false)
	return doc
}

func mustJSON(t *rapid.T, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// canonicalDocuments sorts the keys of the free-form documents, whose order is
// no change.
func canonicalDocuments(t *rapid.T, vm *spec.VirtualMachine) {
	ci := vm.Spec.CloudInit
	if ci == nil {
		return
	}
	for _, r := range []*runtime.RawExtension{ci.UserData, ci.NetworkConfig} {
		if r == nil {
			continue
		}
		var v any
		dec := json.NewDecoder(strings.NewReader(string(r.Raw)))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		r.Raw = mustJSON(t, v)
	}
}

// steps splits a path. A key of a map is always the last step, so that it may
// contain anything.
func steps(path string) []any {
	var out []any
	for path != "" {
		switch {
		case path[0] == '[':
			index, rest, _ := strings.Cut(path[1:], "]")
			if i, err := strconv.Atoi(index); err == nil && isList(out) {
				out, path = append(out, i), rest
				continue
			}
			return append(out, strings.TrimSuffix(path[1:], "]"))
		default:
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			out, path = append(out, path[:end]), path[end:]
		}
	}
	return out
}

func isList(path []any) bool {
	return slices.Contains([]any{"networks", "disks", "hostForwards", "blockDeviceRefs"}, path[len(path)-1])
}

// apply does to a document what a change says, and fails where the document is
// not as the change says it is.
func apply(t *rapid.T, doc map[string]any, c changes.Change) {
	path := steps(c.Path)
	at := any(doc)
	var set func(any) // replaces at in what it is in
	for i, step := range path[:len(path)-1] {
		switch s := step.(type) {
		case string:
			m := at.(map[string]any)
			if _, ok := m[s]; !ok {
				// Go leaves out empty maps and lists.
				if _, list := path[i+1].(int); list {
					m[s] = []any{}
				} else {
					m[s] = map[string]any{}
				}
			}
			at, set = m[s], func(v any) { m[s] = v }
		case int:
			l := at.([]any)
			at, set = l[s], func(v any) { l[s] = v }
		}
	}
	var value any
	if c.NewValue != nil {
		dec := json.NewDecoder(strings.NewReader(string(c.NewValue)))
		dec.UseNumber()
		if err := dec.Decode(&value); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
	}
	present, current := false, any(nil)
	switch last := path[len(path)-1].(type) {
	case string:
		m, ok := at.(map[string]any)
		if !ok {
			t.Fatalf("%s: there is %v", c, at)
		}
		current, present = m[last]
		if list, ok := current.([]any); ok && len(list) == 0 {
			present = false
		}
		if c.NewValue == nil {
			delete(m, last)
		} else {
			m[last] = value
		}
	case int:
		l := at.([]any)
		switch c.Operation {
		case "add":
			if last != len(l) {
				t.Fatalf("%s: the list has %d entries", c, len(l))
			}
			set(append(l, value))
		case "remove":
			if last != len(l)-1 {
				t.Fatalf("%s: the list has %d entries", c, len(l))
			}
			present, current = true, l[last]
			set(l[:last])
		default:
			present, current = true, l[last]
			l[last] = value
		}
	}
	if c.Operation == "add" && current == nil {
		present = false // a pointer without omitempty is null
	}
	if want := c.Operation != "add"; present != want || want != (c.OldValue != nil) || (c.Operation != "remove") != (c.NewValue != nil) {
		t.Fatalf("%s: the old machine has %v", c, current)
	}
}

func TestChangesReadWell(t *testing.T) {
	base := fixture.Parse(t, "vm.yaml", `
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web, labels: {app: web}}
spec:
  cloudInit: {userData: {password: secret}}
  vm:
    maximumCpus: 4
    currentCpus: 2
    maximumRam: 4Gi
    networks: [{user: {hostForwards: [{hostPort: 2222, guestPort: 22}]}}]
    disks:
    - cdrom: {image: a.iso}
    - volumeClaimTemplate:
        metadata: {name: system}
        spec: {resources: {requests: {storage: 10Gi}}}
    - volumeClaimTemplate:
        spec: {volumeMode: Filesystem, resources: {requests: {storage: 10Gi}}}
`)
	q := func(s string) *resource.Quantity { v := resource.MustParse(s); return &v }
	storage := func(s string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(s)}
	}
	var b strings.Builder
	for _, c := range []struct {
		name string
		edit func(*spec.VirtualMachine)
	}{
		{"nothing", func(vm *spec.VirtualMachine) { vm.Spec.VM.MaximumRAM = q("4096Mi") }},
		{"power and labels", func(vm *spec.VirtualMachine) {
			vm.Spec.VM.State = spec.StateRunning
			vm.Labels = map[string]string{"app": "www", "app.kubernetes.io/part-of": "shop"}
		}},
		{"CPUs and memory", func(vm *spec.VirtualMachine) {
			vm.Spec.VM.CurrentCPUs = new(int32(4))
			vm.Spec.VM.CurrentRAM = q("2Gi")
		}},
		{"fewer CPUs", func(vm *spec.VirtualMachine) { vm.Spec.VM.CurrentCPUs = nil }},
		{"beyond the maximum", func(vm *spec.VirtualMachine) {
			vm.Spec.VM.MaximumCPUs, vm.Spec.VM.CurrentCPUs = new(int32(8)), new(int32(6))
			vm.Spec.VM.MaximumRAM, vm.Spec.VM.CurrentRAM = q("8Gi"), q("6Gi")
		}},
		{"topology", func(vm *spec.VirtualMachine) {
			vm.Spec.VM.MaximumCPUs, vm.Spec.VM.CPUTopology = nil, &spec.CPUTopology{Sockets: 2, CoresPerDie: 4}
		}},
		{"CD and disks", func(vm *spec.VirtualMachine) {
			d := vm.Spec.VM.Disks
			d[0].Cdrom.Image = ""
			d[1].VolumeClaimTemplate.Spec.Resources.Requests = storage("20Gi")
			d[2].VolumeClaimTemplate.Spec.Resources.Requests = storage("20Gi")
			d[2].Bootindex = new(int32(0))
		}},
		{"impossible", func(vm *spec.VirtualMachine) {
			t := vm.Spec.VM.Disks[1].VolumeClaimTemplate
			t.Spec.Resources.Requests = storage("5Gi")
			t.Spec.StorageClassName = new("fast")
			t.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}},
		{"another disk", func(vm *spec.VirtualMachine) {
			vm.Spec.VM.Disks[1] = spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "imported"}}
		}},
		{"a renamed disk", func(vm *spec.VirtualMachine) { vm.Spec.VM.Disks[1].VolumeClaimTemplate.Metadata.Name = "root" }},
		{"fewer disks", func(vm *spec.VirtualMachine) { vm.Spec.VM.Disks = vm.Spec.VM.Disks[:1] }},
		{"networks", func(vm *spec.VirtualMachine) {
			vm.Spec.VM.Networks[0].User.HostForwards[0].HostPort = 2223
			vm.Spec.VM.Networks = append(vm.Spec.VM.Networks, spec.Network{Tap: &spec.TapNetwork{}})
		}},
		{"cloud-init", func(vm *spec.VirtualMachine) { vm.Spec.CloudInit.UserData.Raw = []byte(`{"password":"other"}`) }},
		{"provisioning", func(vm *spec.VirtualMachine) {
			vm.Spec.CloudInit, vm.Spec.Provisioning = nil, &spec.Provisioning{Type: spec.ProvisioningUserData, UserData: "secret"}
		}},
		{"no cloud-init", func(vm *spec.VirtualMachine) { vm.Spec.CloudInit = nil }},
		{"pod", func(vm *spec.VirtualMachine) {
			vm.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
			vm.Spec.Image = &spec.RunnerImage{Source: "registry.example.org/runner:2"}
			vm.Spec.LoadBalancerService = &spec.LoadBalancerService{Labels: map[string]*string{"x": nil}}
		}},
		{"terminal codes", func(vm *spec.VirtualMachine) { vm.Spec.VM.Disks[0].Cdrom.Image = "\u009b31m.iso" }},
		{"long", func(vm *spec.VirtualMachine) { vm.Spec.LoggingProperties = strings.Repeat("handlers\n", 50) }},
	} {
		vm := base.DeepCopy()
		c.edit(vm)
		fmt.Fprintf(&b, "# %s\n", c.name)
		for _, change := range changes.Between(base, vm, changes.Options{}) {
			fmt.Fprintln(&b, change)
		}
	}
	fixture.Golden(t, "changes.txt", b.String())
}

func TestDocumentsAreComparedByContent(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		changes        int
	}{
		{"order and spaces", `{"a":1,"b":[2]}`, `{ "b": [2], "a": 1 }`, 0},
		{"escapes", `{"a":"<"}`, `{"a":"\u003c"}`, 0},
		{"large numbers", `{"a":9007199254740993}`, `{"a":9007199254740992}`, 1},
		{"an integer and a float", `{"a":1}`, `{"a":1.0}`, 1},
		{"order of a list", `{"a":[1,2]}`, `{"a":[2,1]}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, new := fixture.Load(t, "basic-vm.yaml"), fixture.Load(t, "basic-vm.yaml")
			old.Spec.CloudInit.UserData = &runtime.RawExtension{Raw: []byte(c.old)}
			new.Spec.CloudInit.UserData = &runtime.RawExtension{Raw: []byte(c.new)}
			if got := changes.Between(old, new, changes.Options{}); len(got) != c.changes {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestNoMachineIsNoPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm, _ := twoManifests(t)
		added, removed := changes.Between(nil, vm, changes.Options{}), changes.Between(vm, nil, changes.Options{})
		if len(added) != len(removed) {
			t.Errorf("%v, and back %v", added, removed)
		}
	})
}
