package attachmenttest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vmop/sdk/internal/displaycert"
	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/attachment"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// state is what an API server has, or a cache of it, by names. Objects are replaced, never
// modified.
type state struct {
	attachments map[string]*spec.VirtualMachineBlockDeviceAttachment
	machines    map[string]*spec.VirtualMachine
	pods        map[string]*corev1.Pod
	secrets     map[string]*corev1.Secret
}

func (s state) clone() state {
	return state{copied(s.attachments), copied(s.machines), copied(s.pods), copied(s.secrets)}
}

func copied[T any](m map[string]T) map[string]T {
	out := make(map[string]T, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// world has two machines, two attachments of one claim, runners, and other pods with the claim.
type world struct {
	promises.World[attachment.Snapshot]
	truth, cache state
	// dirty are the attachments whose caches lack the operator's own writes.
	dirty map[string]bool
	// runners are those of the machines' pods, by the UIDs of the pods.
	runners map[types.UID]*runner
	// plugged are the attachments that a guest has had in a run: UID and key, or UID and that of
	// the pod that had the volume itself.
	plugged map[string]bool
	// mounts decides which volumes of attachments a machine's next pod has.
	mounts func(attachment.Start) ([]objects.Attached, string, time.Time)
	// mounted counts the pods with such volumes.
	mounted int
	// prompt: nodes remove pods at once.
	prompt bool
}

type runner struct {
	key string
	// has are the attachments of its guest, by UID, with their exporters.
	has map[types.UID]types.UID
}

// keys are two certificates, which are expensive to make.
var keys = sync.OnceValue(func() [2]map[string][]byte {
	var out [2]map[string][]byte
	for i := range out {
		data, err := displaycert.Make(&reconcile.Certificate{CommonName: "test", NotBefore: noon, NotAfter: noon.Add(time.Hour)})
		if err != nil {
			panic(err)
		}
		out[i] = data
	}
	return out
})

const claimName = "data"

func newWorld() *world {
	w := &world{
		World: promises.World[attachment.Snapshot]{Decide: attachment.Decide, Now: noon}, dirty: map[string]bool{}, runners: map[types.UID]*runner{}, plugged: map[string]bool{},
		mounts: attachment.Mounts,
	}
	w.truth = state{
		map[string]*spec.VirtualMachineBlockDeviceAttachment{}, map[string]*spec.VirtualMachine{}, map[string]*corev1.Pod{}, map[string]*corev1.Secret{},
	}
	for _, name := range []string{"web", "db"} {
		vm := spec.NewVirtualMachine("lab", name)
		vm.UID = w.UID()
		w.truth.machines[name] = vm
	}
	w.see()
	return w
}

func (w *world) see() { w.cache = w.truth.clone(); clear(w.dirty) }

func (w *world) attach(name, machine string) {
	a := spec.NewAttachment("lab", name, machine, spec.AttachedBlockDevice{Kind: spec.AttachedClaim, Name: claimName})
	a.UID, a.Generation, a.ResourceVersion, a.CreationTimestamp = w.UID(), 1, w.Version(), metav1.NewTime(w.Now)
	w.truth.attachments[name] = a
	w.Note("attachment %s (%s) for %s", name, a.UID, machine)
}

// start creates a running pod of a machine, as the operator does: with the volumes decided by
// mounts, knowing all pods with the claim, and after the report of the former run was withdrawn.
// It reports whether there is a pod.
func (w *world) start(name string) bool {
	if p := w.truth.pods[name]; p != nil {
		return true
	}
	// The cache of attachments may be behind; the users of the claim are known exactly.
	start := attachment.Start{Machine: w.truth.machines[name], Claims: []corev1.PersistentVolumeClaim{*claim()}, Pods: users(w.truth.pods, name), Now: w.Now}
	for _, n := range sortedKeys(w.cache.attachments) {
		if a := w.cache.attachments[n]; a.Spec.VirtualMachineName == name {
			start.Attachments = append(start.Attachments, *a)
		}
	}
	mounts, exporter, until := w.mounts(start)
	if exporter != "" {
		e := w.truth.pods[exporter]
		if e == nil || !until.IsZero() && !until.After(w.Now) {
			w.Violated("a machine starts without what does not end", "%s waits for %s until %v", name, exporter, until)
		}
		w.Note("%s waits for %s", name, exporter)
		return false
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: w.UID(), ResourceVersion: w.Version()}, Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: name}}}}
	objects.AddAttached(p, mounts)
	for _, p := range users(w.truth.pods, "") {
		if len(mounts) > 0 && p.Status.Phase != corev1.PodFailed {
			w.Violated("there is one writer", "pod %s has the claim, and %s is started with it", p.Name, name)
		}
	}
	if len(mounts) > 1 {
		w.Violated("there is one writer", "%s is started with %+v", name, mounts)
	}
	p.Status.Phase = corev1.PodRunning
	w.truth.pods[name] = p
	w.runners[p.UID] = &runner{key: fmt.Sprintf("%064x", w.Serial), has: map[types.UID]types.UID{}}
	w.status(name, func(s *spec.VirtualMachineStatus) { *s = spec.VirtualMachineStatus{Phase: spec.PhaseRunning} })
	w.mounted += len(mounts)
	w.Note("%s starts in %s with %+v", name, p.UID, mounts)
	return true
}

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claimName}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

func (w *world) status(name string, change func(*spec.VirtualMachineStatus)) {
	vm := w.truth.machines[name].DeepCopy()
	change(&vm.Status)
	vm.ResourceVersion, w.truth.machines[name] = w.Version(), vm
}

func (w *world) stop(name string) {
	if p := w.truth.pods[name]; p != nil {
		w.Note("%s stops", name)
		delete(w.runners, p.UID)
		delete(w.truth.pods, name)
	}
}

func (w *world) reports(name string) {
	p := w.truth.pods[name]
	if p == nil {
		if w.truth.machines[name].Status.Phase != spec.PhaseStopped {
			w.status(name, func(s *spec.VirtualMachineStatus) { *s = spec.VirtualMachineStatus{Phase: spec.PhaseStopped} })
		}
		return
	}
	r := w.runners[p.UID]
	var all []spec.MachineAttachment
	wanted := map[types.UID]bool{}
	for _, n := range sortedKeys(w.truth.attachments) {
		a := w.truth.attachments[n]
		c := a.Status.Connection
		if a.Spec.VirtualMachineName != name {
			continue
		}
		if c == nil || c.PodUID != p.UID {
			// Volumes that the pod was created with are in the configuration from then on.
			if m := objects.AttachedBy(p); len(m) == 0 || m[0].For != a.UID || w.connectedTo(p) {
				continue
			}
			c = &spec.AttachmentConnection{PodUID: p.UID, Direct: true}
		}
		wanted[a.UID] = !c.Detach
		say := spec.MachineAttachment{UID: string(a.UID), Name: n, Phase: "Pending"}
		_, has := r.has[a.UID]
		switch {
		case c.Detach && has && w.Draw("the guest keeps it", 3) == 0:
			say.Phase = "Detaching"
		case c.Detach:
			delete(r.has, a.UID)
			say.Phase = "Detached"
		case has:
			say.Phase, say.Place = "Attached", 1
		case c.Direct:
			say.Phase = "Attaching"
			if len(r.has) == 0 && len(objects.AttachedBy(p)) == 1 {
				r.has[a.UID] = p.UID
				w.plugged[string(a.UID)+" "+string(p.UID)] = true
				say.Phase, say.Place = "Attached", 1
				w.Note("%s has %s itself", name, n)
			}
		case c.Address != "":
			say.Phase = "Attaching"
			if e := w.serving(a, r); e != nil {
				r.has[a.UID] = e.UID
				w.plugged[string(a.UID)+" "+r.key] = true
				say.Phase, say.Place = "Attached", 1
				w.Note("%s has %s", name, n)
			}
		}
		all = append(all, say)
	}
	for uid := range r.has {
		if !wanted[uid] {
			delete(r.has, uid) // it left the configuration
		}
	}
	s := &w.truth.machines[name].Status
	if key := r.key; len(all) > 0 && (!reflect.DeepEqual(all, s.Attachments) || s.AttachmentKey != key) || len(all) == 0 && len(s.Attachments) > 0 {
		w.status(name, func(s *spec.VirtualMachineStatus) { s.Attachments, s.AttachmentKey = all, key })
	}
}

func (w *world) connectedTo(p *corev1.Pod) bool {
	for _, a := range w.truth.attachments {
		if c := a.Status.Connection; c != nil && c.PodUID == p.UID && c.Direct && !c.Detach {
			return true
		}
	}
	return false
}

func (w *world) serving(a *spec.VirtualMachineBlockDeviceAttachment, r *runner) *corev1.Pod {
	e := w.truth.pods[objects.ExportPod(a.Name)]
	if e == nil || e.DeletionTimestamp != nil || e.Status.Phase != corev1.PodRunning || !strings.HasSuffix(e.Annotations[names.AnnotationExportsTo], " "+r.key) {
		return nil
	}
	return e
}

func (w *world) kubelet() {
	for _, n := range sortedKeys(w.truth.pods) {
		p := w.truth.pods[n]
		if p.Annotations[names.AnnotationExportsTo] == "" {
			continue
		}
		switch {
		case p.DeletionTimestamp != nil:
			if w.prompt || w.Draw("its node is slow", 4) > 0 {
				delete(w.truth.pods, n)
			}
		case p.Status.Phase == "":
			p = p.DeepCopy()
			p.Status.Phase, p.Status.PodIP, p.ResourceVersion = corev1.PodRunning, "192.0.2."+strconv.Itoa(1+w.Serial%250), w.Version()
			w.truth.pods[n] = p
		}
	}
}

func sortedKeys[T any](m map[string]T) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func users(pods map[string]*corev1.Pod, but string) []corev1.Pod {
	var out []corev1.Pod
	for _, n := range sortedKeys(pods) {
		if n != but && slices.Contains(objects.PodClaims(pods[n]), claimName) {
			out = append(out, *pods[n])
		}
	}
	return out
}

func (w *world) snapshot(name string) attachment.Snapshot {
	a := w.cache.attachments[name]
	s := attachment.Snapshot{
		Attachment: a, Settings: objects.Settings{RunnerImage: "registry.test/runner"}, Now: w.Now,
		Machine: w.cache.machines[a.Spec.VirtualMachineName], Pod: w.cache.pods[a.Spec.VirtualMachineName],
		Claim: claim(),
		Key:   w.cache.secrets[objects.ExportPod(name)], Exporter: w.cache.pods[objects.ExportPod(name)],
		Users: users(w.cache.pods, objects.ExportPod(name)),
	}
	for _, n := range sortedKeys(w.cache.attachments) {
		if n != name {
			s.Others = append(s.Others, *w.cache.attachments[n])
		}
	}
	return s
}

// reconcile decides about an attachment and executes the first writes of the plan: all, and the
// status, if most is negative.
func (w *world) reconcile(name string, most int) reconcile.Plan {
	if w.cache.attachments[name] == nil || w.dirty[name] {
		return reconcile.Plan{}
	}
	s := w.snapshot(name)
	if s.Pod == nil && s.Attachment.Status.Connection != nil {
		s.Pod = w.truth.pods[s.Attachment.Spec.VirtualMachineName] // it is read from the API server
	}
	before, _ := json.Marshal(s)
	plan := w.Decide(s)
	if plan.StartsPod() {
		// Before starting pods all users of the claim must be known.
		s.Users = users(w.truth.pods, objects.ExportPod(name))
		before, _ = json.Marshal(s)
		plan = w.Decide(s)
	}
	if again := w.Decide(s); !reflect.DeepEqual(plan, again) {
		w.Violated("equal snapshots give equal plans", "two plans for one snapshot:\n%+v\n%+v", plan, again)
	}
	if after, _ := json.Marshal(s); string(before) != string(after) {
		w.Violated("a snapshot is not changed", "it has")
	}
	w.checkPlan(&s, plan)
	for i, a := range plan.Actions {
		if i == most {
			w.Note("the operator dies")
			return plan
		}
		if !w.execute(&s, a) {
			w.Note("conflict: %s", a.Target())
			return plan
		}
	}
	if most < 0 {
		for _, st := range plan.Statuses {
			w.write(st)
		}
	}
	return plan
}

func (w *world) checkPlan(s *attachment.Snapshot, plan reconcile.Plan) {
	if long := promises.LongMessage(plan); long != "" {
		w.Violated("a message is one line", "%d bytes: %s", len(long), long)
	}
	now := s.Attachment.Status
	for _, st := range plan.Statuses {
		next := decoded(st)
		now = next
		about := conditions.Attached
		if next.Phase == spec.AttachmentTerminating {
			about = conditions.AttachmentTerminating
		}
		if c := spec.FindCondition(next.Conditions, about); next.Phase == "" || c == nil || c.Reason == "" || c.Message == "" {
			w.Violated("what is awaited is told", "the status is %v", st.Status)
		}
		if c := s.Attachment.Status.Connection; next.Phase == spec.AttachmentAttached && (c == nil || !w.plugged[string(st.UID)+" "+c.Key] && !(c.Direct && w.plugged[string(st.UID)+" "+string(c.PodUID)])) {
			w.Violated("what is attached is there", "%s is told to be attached, by %+v", st.Name, c)
		}
		if c := next.Connection; c != nil && !reflect.DeepEqual(c, s.Attachment.Status.Connection) && (s.Pod == nil || c.PodUID != s.Pod.UID) {
			w.Violated("a connection is for the run that there is", "%+v, and the pod is %+v", c, s.Pod)
		}
	}
	w.looksAgain(s, now, plan)
}

// looksAgain: no watch shows that a pod or Secret goes that has none of the operator's labels.
func (w *world) looksAgain(s *attachment.Snapshot, now spec.VirtualMachineBlockDeviceAttachmentStatus, plan reconcile.Plan) {
	c := spec.FindCondition(now.Conditions, conditions.Attached)
	if s.Attachment.DeletionTimestamp == nil && c != nil && c.Reason == conditions.ReasonNameTaken && plan.Wake.IsZero() {
		w.Violated("what is in the way is looked for again", "there is no time for that: %s", c.Message)
	}
}

func decoded(st reconcile.StatusApply) (out spec.VirtualMachineBlockDeviceAttachmentStatus) {
	data, _ := json.Marshal(st.Status)
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

func (w *world) write(st reconcile.StatusApply) {
	a := w.truth.attachments[st.Name]
	if a == nil || a.UID != st.UID {
		return
	}
	a = a.DeepCopy()
	a.Status, a.ResourceVersion = decoded(st), w.Version()
	w.truth.attachments[st.Name], w.dirty[st.Name] = a, true
	w.Note("%s: %s %+v", st.Name, a.Status.Phase, a.Status.Connection)
}

func (w *world) execute(s *attachment.Snapshot, a reconcile.Action) bool {
	w.Note("%s", a.Target())
	name := s.Attachment.Name
	w.dirty[name] = true
	switch a := a.(type) {
	case reconcile.SetFinalizers:
		o := w.truth.attachments[name]
		if o == nil {
			return true
		}
		if o.UID != a.UID || o.ResourceVersion != a.ResourceVersion {
			return false
		}
		if len(a.Finalizers) == 0 {
			if e := w.truth.pods[objects.ExportPod(name)]; e != nil && e.Annotations[names.AnnotationMadeFor] == string(o.UID) {
				w.Violated("nothing is left of an attachment", "its exporter is there")
			}
			for _, r := range w.runners {
				if _, has := r.has[o.UID]; has {
					w.Violated("nothing is left of an attachment", "a guest has it")
				}
			}
		}
		o = o.DeepCopy()
		o.Finalizers, o.ResourceVersion = a.Finalizers, w.Version()
		if w.truth.attachments[name] = o; o.DeletionTimestamp != nil && len(o.Finalizers) == 0 {
			w.forget(name)
		}
		return true
	case reconcile.Create:
		switch o := a.Object.(type) {
		case *corev1.Secret:
			if w.truth.secrets[o.Name] != nil {
				return false
			}
			o = o.DeepCopy()
			o.UID, o.ResourceVersion, o.Data = w.UID(), w.Version(), keys()[w.Serial%2]
			w.truth.secrets[o.Name] = o
			return true
		case *corev1.Pod:
			if w.truth.pods[o.Name] != nil {
				return false
			}
			if all := users(w.truth.pods, ""); len(all) > 0 {
				w.Violated("there is one writer", "pod %s has the claim", all[0].Name)
			}
			if stored := w.truth.attachments[name]; stored == nil || !slices.Contains(stored.Finalizers, names.FinalizerAttachment) {
				w.Violated("what has an exporter is held", "%+v", stored)
			}
			o = o.DeepCopy()
			o.UID, o.ResourceVersion, o.CreationTimestamp = w.UID(), w.Version(), metav1.NewTime(w.Now)
			w.truth.pods[o.Name] = o
			return true
		}
	case reconcile.DeletePod:
		p := w.truth.pods[a.Name]
		if p == nil || p.UID != a.UID {
			return true
		}
		if p.Annotations[names.AnnotationMadeFor] != string(s.Attachment.UID) {
			w.Violated("a pod of somebody else is left alone", "%s is deleted", p.Name)
		}
		for _, r := range w.runners {
			if r.has[s.Attachment.UID] == p.UID && p.Status.Phase == corev1.PodRunning {
				w.Violated("a guest has its disk until it has released it", "%s is deleted", p.Name)
			}
		}
		p = p.DeepCopy()
		p.DeletionTimestamp, p.ResourceVersion = &metav1.Time{Time: w.Now}, w.Version()
		w.truth.pods[a.Name] = p
		return true
	}
	w.Violated("nothing else is written", "%s", a.Target())
	return false
}

// forget models the garbage collector for a deleted attachment.
func (w *world) forget(name string) {
	delete(w.truth.attachments, name)
	delete(w.truth.secrets, objects.ExportPod(name))
	if p := w.truth.pods[objects.ExportPod(name)]; p != nil && p.Annotations[names.AnnotationExportsTo] != "" {
		delete(w.truth.pods, p.Name)
	}
	w.Note("%s is gone", name)
}

func (w *world) remove(name string) {
	a := w.truth.attachments[name]
	if a == nil || a.DeletionTimestamp != nil {
		return
	}
	w.Note("delete %s", name)
	if len(a.Finalizers) == 0 {
		w.forget(name)
		return
	}
	a = a.DeepCopy()
	a.DeletionTimestamp, a.Generation, a.ResourceVersion = &metav1.Time{Time: w.Now}, a.Generation+1, w.Version()
	w.truth.attachments[name] = a
}

// life returns the first promise that a drawn life of attachments breaks, or nil.
func (w *world) life() *promises.Violation {
	return promises.Broken(func() {
		for range 10 + w.Draw("steps", 80) {
			w.step()
		}
		w.settle()
	})
}

func choose[T any](w *world, label string, from ...T) T { return from[w.Draw(label, len(from))] }

func (w *world) step() {
	name, machine := choose(w, "attachment", "a", "b"), choose(w, "machine", "web", "db")
	switch what := w.Draw("what", 41); {
	case what < 12:
		w.reconcile(name, -1)
	case what < 14:
		for range w.Draw("rounds", 12) {
			w.work()
		}
	case what == 14:
		w.reconcile(name, w.Draw("writes", 2))
		w.Note("another operator")
		w.see()
	case what < 19:
		w.see()
	case what < 25:
		w.reports(machine)
	case what < 29:
		w.kubelet()
	case what < 31:
		w.start(machine)
	case what == 31:
		w.stop(machine)
	case what == 32:
		w.Note("%s is restarted", machine)
		w.stop(machine)
		w.reports(machine)
		for range 6 {
			w.Now = w.Now.Add(time.Second)
			w.start(machine)
			w.work()
		}
	case what < 35 && w.truth.attachments[name] == nil:
		w.attach(name, machine)
	case what == 35:
		w.remove(name)
	case what == 36:
		w.Now = w.Now.Add(choose(w, "time", time.Second, time.Minute, 10*time.Minute))
	case what == 37:
		// A foreign pod has the claim, if no other pod does.
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: choose(w, "pod", "foreign", "a-vmbda"), UID: w.UID(), ResourceVersion: w.Version()}}
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName}}}}
		if w.truth.pods[p.Name] == nil && len(users(w.truth.pods, "")) == 0 {
			w.truth.pods[p.Name] = p
			w.Note("somebody's pod %s", p.Name)
		}
	case what == 38:
		w.othersGo()
	case what == 39:
		// A client deletes the exporter, or a node evicts it.
		if p := w.truth.pods[objects.ExportPod(name)]; p != nil && p.Annotations[names.AnnotationExportsTo] != "" {
			w.Note("the exporter of %s is evicted", name)
			p = p.DeepCopy()
			p.ResourceVersion, p.Status.Phase = w.Version(), corev1.PodFailed
			w.truth.pods[p.Name] = p
		}
	}
}

func (w *world) othersGo() {
	for _, n := range sortedKeys(w.truth.pods) {
		if p := w.truth.pods[n]; w.truth.machines[n] == nil && p.Annotations[names.AnnotationExportsTo] == "" && len(objects.PodClaims(p)) > 0 {
			delete(w.truth.pods, n)
		}
	}
}

func (w *world) work() {
	w.see()
	for _, n := range []string{"a", "b"} {
		w.reconcile(n, -1)
		w.see()
	}
	w.kubelet()
	w.reports("web")
	w.reports("db")
}

func (w *world) rest() {
	rest := 0
	for range 80 {
		before := w.Serial
		w.Now = w.Now.Add(2 * time.Minute)
		w.start("web")
		w.work()
		if rest++; w.Serial != before {
			rest = 0
		}
		if rest == 10 {
			return
		}
	}
	w.Violated("the world comes to rest", "it does not")
}

// settle advances everything without new events, and verifies the final state: the oldest
// attachment of a running machine is attached, and what was deleted no longer exists.
func (w *world) settle() {
	w.Note("nothing happens any more")
	w.othersGo()
	w.prompt = true // a machine starts without what does not end
	w.rest()
	var has *spec.VirtualMachineBlockDeviceAttachment
	for _, a := range w.truth.attachments {
		if a.Status.Phase == spec.AttachmentAttached && a.Spec.VirtualMachineName == "web" {
			has = a
		}
	}
	if w.Draw("web is restarted", 2) == 0 {
		w.stop("web")
		w.reports("web")
		for range 20 { // its exporter gets the time that it needs
			w.Now = w.Now.Add(time.Second)
			w.start("web")
			w.work()
		}
		w.rest()
		if p := w.truth.pods["web"]; has != nil && p != nil && len(objects.AttachedBy(p)) == 0 {
			w.Violated("the next pod has what is attached", "%s was attached, and pod %s has nothing", has.Name, p.UID)
		}
	}
	if p := w.truth.pods["db"]; p != nil && len(objects.AttachedBy(p)) > 0 {
		// It has the volume until it ends, as the others report.
		w.stop("db")
		w.rest()
	}
	if w.truth.pods["web"] == nil {
		w.Violated("a machine starts without what does not end", "it waits still")
	}
	attached := 0
	for _, n := range sortedKeys(w.truth.attachments) {
		a := w.truth.attachments[n]
		switch {
		case a.DeletionTimestamp != nil:
			w.Violated("what is deleted goes", "%s is %s: %+v", n, a.Status.Phase, a.Status.Conditions)
		case a.Status.Phase == spec.AttachmentAttached:
			attached++
		case a.Spec.VirtualMachineName == "web" && len(w.truth.attachments) == 1:
			w.Violated("what can be attached is attached", "%s is %s: %+v", n, a.Status.Phase, a.Status.Conditions)
		}
	}
	if attached > 1 {
		w.Violated("there is one writer", "%d attachments are attached", attached)
	}
}
