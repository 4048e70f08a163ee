package machinetest

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newResizingWorld has kubelets that resize pods in place, and a runner that follows its
// configuration.
func newResizingWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := newWorld(choose, decide)
	w.nodes = &capacity{allocated: map[types.UID]corev1.ResourceList{}, written: map[string]int{}, silent: choose("silent", 3) == 1, refuses: choose("refuses", 2) == 1}
	w.nodes.room, w.nodes.most = capacityOf(8), capacityOf(16)
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.MaximumCPUs, vm.Spec.VM.MaximumRAM = new(int32(8)), new(quantity("8Gi"))
	vm.Spec.VM.CurrentCPUs, vm.Spec.VM.CurrentRAM = new(int32(2)), new(quantity("2Gi"))
	w.put(theVM, vm)
	w.observeAll()
	return w
}

// newNamesWorld lets the machine's pods have any names, as from an operator of another version,
// and lets there be several.
func newNamesWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := newWorld(choose, decide)
	w.named, w.seconds = true, map[types.UID]bool{}
	return w
}

// newHeldWorld has machines with the finalizer from their creation on, as from
// deploy/finalizer-policy.yaml.
func newHeldWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := newWorld(choose, decide)
	w.held = true
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Finalizers = []string{names.FinalizerMachine}
	w.put(theVM, vm)
	w.observeAll()
	return w
}

func newWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := &world{
		choose: choose, decide: decide, now: worldBegins,
		objects: map[string]*history{}, owned: map[string]map[string]bool{},
		failures: map[reconcile.Target]reconcile.Failure{},
		made:     map[types.UID]string{}, madeAt: map[types.UID]int64{}, guests: map[types.UID]*guest{}, dead: map[string]bool{}, lastEnds: map[types.UID]end{},
		settings: objects.Settings{Version: "1", TakeOverData: true, Allowed: objects.Allowed{Everything: true}},
	}
	w.createVM()
	if w.choose("start", 3) == 1 {
		// A pod of an old StatefulSet hangs on an unreachable node.
		w.intruder()
		at := metav1.NewTime(w.now)
		pod := get[*corev1.Pod](w, "pod/intruder")
		pod.DeletionTimestamp = &at
		w.put("pod/intruder", pod)
		w.dead["n1"] = true
	}
	if w.choose("made by VM-Operator", 3) == 1 {
		takeover(w, w.choose("since 3.4", 2) == 1, false)
	}
	w.observeAll()
	return w
}

// newHotWorld has users who add disks to the manifest of a running machine, and remove them.
func newHotWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := newWorld(choose, decide)
	w.exports = true
	for _, name := range hotClaims {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "apps"}}
		c.Status.Phase = corev1.ClaimBound
		w.put("claim/"+name, c)
	}
	if w.choose("approves", 2) == 1 {
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
		w.put(theVM, vm)
	}
	return w
}

func newPolicyWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := newWorld(choose, decide)
	w.policies = true
	vm := get[*spec.VirtualMachine](w, theVM)
	if n := choose("policy at first", len(runPolicies)+1); n > 0 {
		vm.Spec.RunPolicy = runPolicies[n-1]
	}
	if choose("approves at first", 2) == 1 {
		vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
	}
	if choose("has a Secret", 2) == 1 {
		vm.Spec.CloudInit = userDataFrom("web-init")
		w.provide(vm)
	}
	w.put(theVM, vm)
	return w
}

// fairWorld begins without drawn events.
func fairWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := newWorld(func(string, int) int { return 0 }, decide)
	w.choose = choose
	return w
}

func newUserDataWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := fairWorld(choose, decide)
	w.inline, w.given, w.taken = true, map[types.UID]string{}, map[string]bool{}
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.Provisioning = inlineUserData(0)
	w.put(theVM, vm)
	return w
}

func newDocumentsWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := fairWorld(choose, decide)
	w.written = true
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.CloudInit = &spec.CloudInit{UserData: documentOf(`{"runcmd":["a"]}`)}
	w.put(theVM, vm)
	w.observeAll() // a machine of this world always has cloudInit
	return w
}

// takeover creates what VM-Operator leaves in a cluster: its ConfigMap, its pod if the machine
// runs, and claims with the names of its versions before 3.4 or, if recent, since.
func takeover(w *world, recent, running bool) {
	claims := []string{"runner-data-web-0", "system-disk-web-0"}
	if recent {
		claims = []string{"web-runner-data", "web-system-disk"}
	}
	w.former = map[string]bool{claims[0]: true}
	vm := mustGet[*spec.VirtualMachine](w, theVM)
	no := false
	owner := []metav1.OwnerReference{{APIVersion: spec.GroupVersion().String(), Kind: spec.KindVirtualMachine, Name: "web", UID: vm.UID, Controller: &no}}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "apps", Labels: objects.InstanceLabels("web")}
	}
	vm.Spec.CloudInit = &spec.CloudInit{}
	w.put(theVM, vm)
	cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta("web")}
	cm.OwnerReferences = owner
	cm.Data = map[string]string{names.ConfigKey: "\"/Runner\":\n  resetCounter: 3\n  cloudInit:\n    metaData:\n      instance-id: v7\n  vm:\n    name: web\n", names.LoggingKey: ""}
	w.put(theConfig, cm)
	for _, name := range claims {
		pvc := &corev1.PersistentVolumeClaim{ObjectMeta: meta(name)}
		pvc.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
		pvc.Status.Phase = corev1.ClaimBound
		w.put("claim/"+name, pvc)
	}
	secret := objects.DisplaySecret(vm, "secret")
	w.put("secret/"+secret.Name, secret)
	if !running {
		return
	}
	pod := &corev1.Pod{ObjectMeta: meta("web")}
	pod.OwnerReferences = owner
	pod.Annotations = map[string]string{names.AnnotationConfigVersion: cm.ResourceVersion}
	pod.UID = w.uid()
	pod.Spec.NodeName, pod.Spec.RestartPolicy = "n1", corev1.RestartPolicyAlways
	for _, c := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
	}
	w.start(pod)
	if !slices.Contains(w.guests[pod.UID].claims, claims[1]) {
		panic("the guest has no disk")
	}
}

// newClassWorld has changes of classes, and of the machine by its owner, and nothing else.
func newClassWorld(choose func(string, int) int, decide func(machine.Snapshot) reconcile.Plan) *world {
	w := fairWorld(choose, decide)
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.MaximumCPUs = new(int32(8))
	vm.Spec.VirtualMachineClassName = append([]string{""}, worldClasses...)[choose("class", 3)]
	w.put(theVM, vm)
	w.classes = true
	for range choose("classes", 4) {
		w.changeClass()
	}
	w.observeAll()
	return w
}
