package machinetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// world is a model of a cluster with one machine: an API server, what an operator has observed of
// it, kubelets, runners, the controller manager and users. All events are drawn by choose, so
// that a failure can be replayed.
type world struct {
	choose  func(what string, n int) int
	decide  func(machine.Snapshot) reconcile.Plan
	now     time.Time
	serial  int
	objects map[string]*history
	// owned are the status fields and condition types of each manager.
	owned    map[string]map[string]bool
	failures map[reconcile.Target]reconcile.Failure
	// forbidden are the kinds that the API server refuses in a story.
	forbidden map[string]bool
	settings  objects.Settings

	// nodes is the capacity for resized pods; nil for nodes that do not resize.
	nodes  *capacity
	guests map[types.UID]*guest
	dead   map[string]bool // nodes that do not report

	// State for the invariants.
	requests   int                 // requested resets
	decisions  int                 // decisions of a user or the guest about running
	stopNoted  int                 // decisions when the last end was noted
	lastEnds   map[types.UID]end   // how pods truly ended
	policies   bool                // users set run policies
	upsets     int                 // number of events that a run policy has a rule for
	asked      asked               // the last request for power
	off        asked               // the last end that a run policy keeps the machine stopped for
	waits      map[string]*waiting // the status's waits by condition
	waited     map[waitingSince]*waiting
	named      bool                 // pods may have any names
	held       bool                 // the API server adds the finalizer to new machines
	seconds    map[types.UID]bool   // pods that users have created beside those of the machine
	classes    bool                 // there are classes
	exports    bool                 // disks are plugged and unplugged
	inline     bool                 // user data is in the manifest
	given      map[types.UID]string // the machine's user data when the pods were created
	taken      map[string]bool      // objects with user data that users have deleted
	written    bool                 // documents for cloud-init are in the manifest
	notes      []string             // the ConfigMap's notes about them
	content    int                  // content of the Secret with the user data
	unbound    bool                 // no volumes are provisioned
	mentioned  []string             // claims that another machine's manifest mentions
	orphans    map[types.UID]bool   // pods of machines that were deleted without them
	abandoned  map[types.UID]bool   // machines that were deleted without what is theirs
	former     map[string]bool      // the names of claims with the runner's data that VM-Operator made
	made       map[types.UID]string // the machine when the pods were created
	madeAt     map[types.UID]int64  // and its generation
	log        []string
	operations int
}

// history is all versions of an object; nil is absence. The operator has observed them up to
// seen, and never goes back.
type history struct {
	versions []version
	seen     int
}

type version struct {
	object reconcile.Object
	at     time.Time
}

type guest struct {
	pod    *corev1.Pod
	stage  int  // 0 container started, 1 runner reported, 2 guest executes, 3 booted
	told   bool // the last report succeeded
	claims []string
	// content is the user data with which the guest was started.
	content int
	// generation is that of the configuration that the runner follows; has is what the guest may
	// use by it.
	generation int64
	has        objects.Amounts
	// pending is what waits for the pod, by that configuration.
	pending objects.Amounts
}

type end struct {
	at         time.Time
	failed     bool
	generation int64
}

type violation struct{ name, detail string }

func (v violation) Error() string { return v.name + ": " + v.detail }

func (w *world) violated(name, format string, args ...any) {
	panic(violation{name, fmt.Sprintf(format, args...)})
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

const (
	theVM     = "vm"
	theConfig = "configmap/web"
	theLB     = "service/web"
	thePod    = "pod/web"
)

var worldBegins = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// maxLag is the longest delay of an observation.
const maxLag = 20 * time.Second

func (w *world) createVM() {
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "apps", UID: w.uid(), Generation: 1}}
	vm.Spec.VM.State = spec.StateRunning
	vm.Spec.VM.MaximumCPUs = new(int32(2))
	template := &spec.VolumeClaimTemplate{}
	template.Metadata.Name = "system"
	template.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}
	vm.Spec.VM.Disks = []spec.Disk{{VolumeClaimTemplate: template}}
	spec.Default(vm)
	w.owned, w.lastEnds, w.waits = map[string]map[string]bool{}, map[types.UID]end{}, map[string]*waiting{}
	w.waited = map[waitingSince]*waiting{}
	w.asked, w.off = asked{}, asked{}
	w.upsets++
	if w.held {
		vm.Finalizers = []string{names.FinalizerMachine}
	}
	if w.policies && w.choose("has a policy", 3) > 0 {
		vm.Spec.RunPolicy = runPolicies[w.choose("policy", len(runPolicies))]
	}
	w.put(theVM, vm)
}

func (w *world) uid() types.UID {
	w.serial++
	return types.UID("uid-" + strconv.Itoa(w.serial))
}

func (w *world) put(key string, o reconcile.Object) {
	h := w.objects[key]
	if h == nil {
		h = &history{versions: []version{{nil, w.now}}}
		w.objects[key] = h
	}
	if o != nil {
		w.serial++
		o.SetResourceVersion(strconv.Itoa(w.serial))
		if o.GetUID() == "" {
			o.SetUID(w.uid())
		}
	}
	h.versions = append(h.versions, version{o, w.now})
}

func (w *world) keys(prefix string) []string {
	var out []string
	for k := range w.objects {
		if strings.HasPrefix(k, prefix) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// get returns a copy of the newest version, nil if there is none.
func get[T reconcile.Object](w *world, key string) T {
	var none T
	h := w.objects[key]
	if h == nil || h.versions[len(h.versions)-1].object == nil {
		return none
	}
	return h.versions[len(h.versions)-1].object.DeepCopyObject().(T)
}

func cached[T reconcile.Object](w *world, key string) T {
	var none T
	h := w.objects[key]
	if h == nil || h.versions[h.seen].object == nil {
		return none
	}
	return h.versions[h.seen].object.DeepCopyObject().(T)
}

func (w *world) observeAll() {
	for _, k := range w.keys("") {
		h := w.objects[k]
		h.seen = len(h.versions) - 1
	}
}

// observeLatest reports whether the operator had not yet observed the latest versions of some
// objects, which it then has.
func (w *world) observeLatest(keys ...string) (news bool) {
	for _, k := range keys {
		if h := w.objects[k]; h != nil && h.seen < len(h.versions)-1 {
			h.seen, news = len(h.versions)-1, true
		}
	}
	return news
}

func (w *world) observeSome() {
	keys := w.keys("")
	h := w.objects[keys[w.choose("object", len(keys))]]
	if behind := len(h.versions) - 1 - h.seen; behind > 0 {
		h.seen += 1 + w.choose("versions", behind)
	}
}

// pass lets time pass. No observation is delayed by more than maxLag.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	for _, k := range w.keys("") {
		h := w.objects[k]
		for h.seen < len(h.versions)-1 && w.now.Sub(h.versions[h.seen+1].at) > maxLag {
			h.seen++
		}
	}
}

// The results of a write.
type result int

const (
	done    result = iota
	stale          // conflict, already exists
	refused        // forbidden
	lost           // a timeout with an unknown outcome
)

// besideEnded reports whether another ended pod of the machine is not being deleted.
func (w *world) besideEnded(pod *corev1.Pod) bool {
	return slices.ContainsFunc(w.keys("pod/"), func(key string) bool {
		o := get[*corev1.Pod](w, key)
		return o != nil && o.UID != pod.UID && hasEnded(o) && o.DeletionTimestamp == nil && len(o.OwnerReferences) > 0 && len(pod.OwnerReferences) > 0 &&
			o.OwnerReferences[0].UID == pod.OwnerReferences[0].UID
	})
}

func outcome(c runnerconfig.Cause) string {
	return string(runnerconfig.Outcome{Cause: c, Message: "it ended"}.TerminationMessage())
}

// capacity is what the nodes of a world have for the machine's pod, and what their kubelets have
// given to pods.
type capacity struct {
	room      corev1.ResourceList // now
	most      corev1.ResourceList // without other pods
	allocated map[types.UID]corev1.ResourceList
	// written are the versions that the operator has written. It does not decide before its
	// caches show them, see the controller's look.awaits.
	written map[string]int
	// silent: the kubelet does not report the observed generation, as before Kubernetes 1.34.
	silent bool
	// refuses: the API server refuses what the node can never give, as since Kubernetes 1.36.
	refuses bool
}

// waiting is a period in which the status has one reason and object of a wait.
type waiting struct {
	wait  spec.Wait
	since time.Time
	// notes are those of the events about it, of any condition.
	notes map[string]bool
}

// waitingSince distinguishes waits of the same reason and object. An operator that observes an
// old status continues a wait that a later status does not have: its event need not be emitted
// again.
type waitingSince struct {
	reason, object string
	since          int64
}

func sinceOf(w spec.Wait) waitingSince { return waitingSince{w.Reason, w.Object, w.Since.Unix()} }

func (s waitingSince) is(w spec.Wait) bool { return sinceOf(w) == s }

// asked is what decides whether a machine runs until another such event happens.
type asked struct {
	verb   machine.Verb
	upsets int
}

var runPolicies = []spec.RunPolicy{
	spec.RunPolicyAlwaysOn, spec.RunPolicyAlwaysOff, spec.RunPolicyManual, spec.RunPolicyAlwaysOnUnlessStoppedManually,
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func hasEnded(pod *corev1.Pod) bool {
	return pod != nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}

// madeFor returns what may change of a machine of newWorld and then waits for a restart, except
// the size of its disk: shrinking is refused.
func madeFor(vm *spec.VirtualMachine) string {
	if vm.Spec.VM.MaximumCPUs == nil {
		return "" // a machine of another test
	}
	// A user may lower the maximum below what the guest has: [spec.Amend] raises it.
	return fmt.Sprint(max(*vm.Spec.VM.MaximumCPUs, changes.CurrentCPUs(&vm.Spec.VM)), vm.Spec.VM.CPUModel)
}

// impossible is why a line of a story cannot happen, raised as a panic.
type impossible string

func mustGet[T reconcile.Object](w *world, key string) T {
	if get[reconcile.Object](w, key) == nil {
		panic(impossible("there is no " + key))
	}
	return get[T](w, key)
}

func (w *world) statusOf(part map[string]any) spec.VirtualMachineStatus {
	data, err := json.Marshal(part)
	if err != nil {
		w.violated("a status is JSON", "%v", err)
	}
	var out spec.VirtualMachineStatus
	if err := json.Unmarshal(data, &out); err != nil {
		w.violated("a status fits the type", "%v: %s", err, data)
	}
	return out
}
