package machinetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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

// world is a model of a cluster with one machine: an API server, what an
// operator has observed of it, kubelets, runners, the controller manager and
// people. All that happens is chosen by choose, so a failure can be replayed.
type world struct {
	choose  func(what string, n int) int
	decide  func(machine.Snapshot) reconcile.Plan
	now     time.Time
	serial  int
	objects map[string]*history
	// owned are the status fields and condition types of each manager.
	owned    map[string]map[string]bool
	failures map[reconcile.Target]reconcile.Failure
	// forbidden are the kinds that the API server takes from no operator, in a story.
	forbidden map[string]bool
	settings  objects.Settings

	// nodes says what the nodes do about pods that are to be resized; nil for nodes
	// that do nothing.
	nodes  *capacity
	guests map[types.UID]*guest
	dead   map[string]bool // nodes that do not answer

	// What invariants need to remember.
	requests   int                 // resets that were asked for
	decisions  int                 // how often a person or the guest decided about running
	stopNoted  int                 // decisions when the last end was noted
	lastEnds   map[types.UID]end   // how pods really ended
	policies   bool                // people use run policies
	upsets     int                 // how often something happened that a run policy has a rule for
	asked      asked               // the last request for power
	off        asked               // the last end that a run policy keeps the machine stopped for
	waits      map[string]*waiting // what the status waits for, by its condition
	waited     map[waitingSince]*waiting
	named      bool                 // pods may have any names
	seconds    map[types.UID]bool   // pods that somebody has made beside those of the machine
	classes    bool                 // there are classes
	exports    bool                 // disks come and go
	inline     bool                 // user data is in the manifest
	given      map[types.UID]string // that of the machine when the pods were made
	taken      map[string]bool      // objects with user data that somebody has deleted
	written    bool                 // documents for cloud-init are in the manifest
	notes      []string             // what the ConfigMap has noted of them
	content    int                  // what stands in the Secret with the user data
	unbound    bool                 // nobody makes volumes for claims
	mentioned  []string             // claims that another machine's manifest mentions
	orphans    map[types.UID]bool   // pods of machines that were deleted without them
	former     map[string]bool      // the names of claims with the runner's data that VM-Operator made
	made       map[types.UID]string // what the machine was when the pods were made
	madeAt     map[types.UID]int64  // and its generation
	log        []string
	operations int
}

// history is all versions of an object; nil is absence. The operator has seen
// them up to one, and never goes back.
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
	told   bool // the last report got through
	claims []string
	// content is that of the user data with which the guest was started.
	content int
	// generation is that of the configuration that the runner follows, has is what
	// the guest may use by it.
	generation int64
	has        objects.Amounts
}

type end struct {
	at         time.Time
	failed     bool
	generation int64
}

// violation is a broken promise, raised as a panic.
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

// worldBegins is when.
var worldBegins = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// maxLag is the longest that an observation is behind.
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
	if w.policies && w.choose("has a policy", 3) > 0 {
		vm.Spec.RunPolicy = runPolicies[w.choose("policy", len(runPolicies))]
	}
	w.put(theVM, vm)
}

func (w *world) uid() types.UID {
	w.serial++
	return types.UID("uid-" + strconv.Itoa(w.serial))
}

// put stores a new version of an object; nil deletes it.
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

// keys are the keys of a kind, in order.
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

// get is the truth: a copy of the newest version. It is nil if there is none.
func get[T reconcile.Object](w *world, key string) T {
	var none T
	h := w.objects[key]
	if h == nil || h.versions[len(h.versions)-1].object == nil {
		return none
	}
	return h.versions[len(h.versions)-1].object.DeepCopyObject().(T)
}

// cached is what the operator has seen.
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

// observeSome lets the operator see newer versions of one object, perhaps not
// all that there were in between.
func (w *world) observeSome() {
	keys := w.keys("")
	h := w.objects[keys[w.choose("object", len(keys))]]
	if behind := len(h.versions) - 1 - h.seen; behind > 0 {
		h.seen += 1 + w.choose("versions", behind)
	}
}

// pass lets time go by. No observation stays behind for longer than the lag.
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
	stale          // conflict, exists already
	refused        // forbidden
	lost           // a time-out: nobody knows
)

// besideEnded reports whether another pod of the machine has ended, too, and is not being
// deleted.
func (w *world) besideEnded(pod *corev1.Pod) bool {
	return slices.ContainsFunc(w.keys("pod/"), func(key string) bool {
		o := get[*corev1.Pod](w, key)
		return o != nil && o.UID != pod.UID && hasEnded(o) && o.DeletionTimestamp == nil && len(o.OwnerReferences) > 0 && len(pod.OwnerReferences) > 0 &&
			o.OwnerReferences[0].UID == pod.OwnerReferences[0].UID
	})
}

// outcome is a termination message.
func outcome(c runnerconfig.Cause) string {
	return string(runnerconfig.Outcome{Cause: c, Message: "it ended"}.TerminationMessage())
}

// capacity is what the nodes of a world have for the machine's pod, and what
// their kubelets have given to pods.
type capacity struct {
	room      corev1.ResourceList // now
	most      corev1.ResourceList // if there were nothing else
	allocated map[types.UID]corev1.ResourceList
	// written are the versions that the operator has written itself. It does not
	// decide before its caches show them, see the controller's look.awaits.
	written map[string]int
	// silent: the kubelet does not tell which generation it has seen, as before
	// Kubernetes 1.34.
	silent bool
}

// waiting is a time in which the status gives one reason, about one object, for
// which something is not as it should be.
type waiting struct {
	wait  spec.Wait
	since time.Time
	// notes are those of the events that told of it, by whichever condition.
	notes map[string]bool
}

// waitingSince is what tells one wait from another of the same reason and object.
// An operator that sees an old status continues a wait which a later one does
// not have: whoever was told of it then need not be told again.
type waitingSince struct {
	reason, object string
	since          int64
}

func sinceOf(w spec.Wait) waitingSince { return waitingSince{w.Reason, w.Object, w.Since.Unix()} }

func (s waitingSince) is(w spec.Wait) bool { return sinceOf(w) == s }

// asked is something that decides whether a machine runs as long as nothing else
// happens that does.
type asked struct {
	verb   machine.Verb
	upsets int
}

var runPolicies = []spec.RunPolicy{
	spec.RunPolicyAlwaysOn, spec.RunPolicyAlwaysOff, spec.RunPolicyManual, spec.RunPolicyAlwaysOnUnlessStoppedManually,
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// hasEnded reports whether nothing runs in a pod any more.
func hasEnded(pod *corev1.Pod) bool {
	return pod != nil && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}

// madeFor is what of a machine of newWorld may change and waits for a restart
// then, without the size of its disk: one that would shrink waits for nothing.
func madeFor(vm *spec.VirtualMachine) string {
	if vm.Spec.VM.MaximumCPUs == nil {
		return "" // a machine of another test
	}
	// A person may lower the maximum below what the guest has: [spec.Amend] raises it.
	return fmt.Sprint(max(*vm.Spec.VM.MaximumCPUs, changes.CurrentCPUs(&vm.Spec.VM)), vm.Spec.VM.CPUModel)
}

// impossible is why a line of a story cannot happen. It is raised as a panic.
type impossible string

// mustGet is the truth about something that a story is about.
func mustGet[T reconcile.Object](w *world, key string) T {
	if get[reconcile.Object](w, key) == nil {
		panic(impossible("there is no " + key))
	}
	return get[T](w, key)
}

// statusOf reads a part of a status.
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
