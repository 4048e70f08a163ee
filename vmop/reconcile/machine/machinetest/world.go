package machinetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
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
	settings objects.Settings

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
		// A pod of an old StatefulSet hangs on a node that does not answer.
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

func (w *world) snapshot() (machine.Snapshot, bool) {
	s := machine.Snapshot{
		VM: cached[*spec.VirtualMachine](w, theVM), Settings: w.settings, Now: w.now,
		ConfigMap: cached[*corev1.ConfigMap](w, theConfig),
		Service:   cached[*corev1.Service](w, theLB), Password: "password-" + strconv.Itoa(w.serial), Mentioned: w.mentioned,
	}
	for _, k := range w.keys("pod/") {
		if pod := cached[*corev1.Pod](w, k); pod != nil {
			s.Pods = append(s.Pods, *pod)
		}
	}
	for _, k := range w.keys("exporter/") {
		if pod := cached[*corev1.Pod](w, k); pod != nil {
			s.Pods = append(s.Pods, *pod)
		}
	}
	for _, k := range w.keys("attachment/") {
		if a := cached[*spec.VirtualMachineBlockDeviceAttachment](w, k); a != nil {
			s.Attachments = append(s.Attachments, *a)
		}
	}
	for _, k := range w.keys("secret/") {
		if o := cached[*corev1.Secret](w, k); o != nil && strings.Contains(o.Name, ".user-data") {
			s.UserData = append(s.UserData, *o)
		} else if o != nil && o.Labels[names.LabelComponent] != names.ComponentDisplaySecret {
			s.Certificates = append(s.Certificates, *o)
		} else if o != nil {
			s.DisplaySecrets = append(s.DisplaySecrets, *o)
		}
	}
	for _, k := range w.keys("configmap/") {
		if o := cached[*corev1.ConfigMap](w, k); o != nil && k != theConfig {
			s.UserDataHolders = append(s.UserDataHolders, *o)
		}
	}
	if s.VM != nil {
		// Nobody watches it: it is read when it is needed.
		s.Certificate = get[*corev1.Secret](w, "certificate/"+machine.NamedCertificate(s.VM, s.Pod()))
		s.Secrets = w.statesOf(machine.NeededSecrets(s.VM, s.Pod()))
	}
	for _, k := range w.keys("claim/") {
		if o := cached[*corev1.PersistentVolumeClaim](w, k); o != nil {
			s.Claims = append(s.Claims, *o)
		}
	}
	if s.VM != nil && w.classes {
		s.Classes = w.classesOf(s.VM, cached[*spec.VirtualMachineClass])
	}
	s.ImageRepository = cached[*corev1.PersistentVolumeClaim](w, "claim/"+names.ImageRepositoryClaim)
	for _, f := range w.failures {
		s.Failures = append(s.Failures, f)
	}
	slices.SortFunc(s.Failures, func(a, b reconcile.Failure) int { return strings.Compare(a.Target.String(), b.Target.String()) })
	return s, s.VM != nil
}

// statesOf looks for the Secrets that a guest is provisioned from.
func (w *world) statesOf(needed []machine.NeededSecret) map[string]machine.SecretState {
	out := map[string]machine.SecretState{}
	for _, n := range needed {
		o := get[*corev1.Secret](w, "provisioning/"+n.Name)
		switch {
		case o == nil:
			out[n.Name] = machine.SecretMissing
		case len(n.Types) > 0 && !slices.Contains(n.Types, string(o.Type)):
			out[n.Name] = machine.SecretOfOtherType
		default:
			out[n.Name] = machine.SecretThere
		}
	}
	return out
}

// provide makes the Secrets that a guest is provisioned from.
func (w *world) provide(vm *spec.VirtualMachine) {
	vm = vm.DeepCopy()
	vm.Spec.VM.State = spec.StateRunning
	for _, n := range machine.NeededSecrets(vm, nil) {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		if len(n.Types) > 0 {
			o.Type = corev1.SecretType(n.Types[len(n.Types)-1])
		}
		w.put("provisioning/"+n.Name, o)
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

// untold is a plan of which something failed: its events were not told.
func untold(p reconcile.Plan) reconcile.Plan {
	p.Events = nil
	return p
}

// reconcile is one run of an operator that observes what it has seen, decides
// and writes, until something fails or it is killed. It returns what it decided,
// with those events that it told.
func (w *world) reconcile(faults bool) reconcile.Plan {
	s, ok := w.snapshot()
	if !ok || w.behind() {
		return reconcile.Plan{}
	}
	stored := get[*spec.VirtualMachine](w, theVM)
	latest := stored != nil && stored.ResourceVersion == s.VM.ResourceVersion
	p := w.decide(s)
	w.checkPlan(&s, &p)
	if p.DeletesClaims() { // the API server is asked whether it is still wanted
		h := w.objects[theVM]
		if h.seen < len(h.versions)-1 {
			h.seen = len(h.versions) - 1
			if s, ok = w.snapshot(); !ok {
				return reconcile.Plan{}
			}
			p = w.decide(s)
			w.checkPlan(&s, &p)
		}
	}
	if p.Releases() || w.named && p.StartsPod() {
		if w.observePods() { // the API server is asked
			s, _ = w.snapshot()
			p = w.decide(s)
			w.checkPlan(&s, &p)
		}
	}
	until := len(p.Actions) + 1
	if faults {
		until = w.choose("killed after", 2*until+2)
	}
	for i, a := range p.Actions {
		if i == until {
			w.note("the operator is killed")
			return untold(p)
		}
		r := done
		if faults {
			r = []result{done, done, done, done, done, stale, refused, lost, lost}[w.choose("fault", 9)]
		}
		if r == done || r == lost && w.choose("effect", 2) == 0 {
			got := w.act(a)
			w.wrote(a)
			w.note("%s%s", a.Target(), map[result]string{done: "", stale: ": the snapshot was old"}[got])
			if r == done {
				r = got
			}
		} else {
			w.note("%s: fails", a.Target())
		}
		if r == done {
			delete(w.failures, a.Target())
			continue
		}
		if r == refused {
			f := w.failures[a.Target()]
			w.failures[a.Target()] = reconcile.Failure{
				Target: a.Target(), Reason: "Forbidden", Message: "exceeded quota: pods", Count: f.Count + 1, Last: w.now,
			}
		}
		return untold(p)
	}
	if until <= len(p.Actions) {
		return untold(p)
	}
	for _, st := range p.Statuses {
		if faults && w.choose("status fault", 5) == 0 {
			return untold(p)
		}
		vm := get[*spec.VirtualMachine](w, theVM)
		if vm == nil || vm.UID != s.VM.UID || st.ResourceVersion != "" && st.ResourceVersion != vm.ResourceVersion {
			return untold(p)
		}
		w.applyStatus(vm, st.Manager, st.Status)
		if st.Manager == names.OperatorStatusManager {
			w.noteWaits(vm, s.VM)
		}
		if st.Manager == names.OperatorStatusManager && vm.Status.LastEnd != nil &&
			(s.VM.Status.LastEnd == nil || s.VM.Status.LastEnd.PodUID != vm.Status.LastEnd.PodUID) {
			w.stopNoted = w.decisions
		}
		w.put(theVM, vm)
		w.note("status of %s: %v", st.Manager, st.Status["phase"])
	}
	for _, e := range p.Events {
		w.told(e, latest)
	}
	return p
}

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

func (w *world) podUID() types.UID {
	if pod := get[*corev1.Pod](w, thePod); pod != nil {
		return pod.UID
	}
	return ""
}
