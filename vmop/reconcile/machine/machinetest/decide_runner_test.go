package machinetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An operator with another image changes nothing about a machine that runs: one
// condition says so, once, and the next start has it.
func TestOtherRunnerImage(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, decideOnLess)
	w.settings.RunnerImage = "registry.example.org/runner:1"
	rest := func() (writes int) {
		for range 10 {
			w.observeAll()
			p := w.reconcile(false)
			writes += len(p.Actions) + len(p.Statuses)
			w.controllers()
			if pod := get[*corev1.Pod](w, thePod); pod != nil {
				w.tend(pod, goodWay)
			}
		}
		return writes
	}
	upToDate := func() *spec.Condition {
		return spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionRunnerUpToDate)
	}
	rest()
	if c := upToDate(); c == nil || c.Status != metav1.ConditionTrue {
		t.Fatalf("%+v", c)
	}
	pod := get[*corev1.Pod](w, thePod)
	// The same tag with a digest is another image, too.
	w.settings.RunnerImage, w.settings.Version = "registry.example.org/runner:1@sha256:0123", "2"
	if n := rest(); n != 1 {
		t.Errorf("%d writes after the upgrade", n)
	}
	c, s := upToDate(), get[*spec.VirtualMachine](w, theVM).Status
	if c.Status != metav1.ConditionFalse || c.Reason != spec.ReasonOtherImage ||
		c.Message != "the machine runs with the image registry.example.org/runner:1 (runner 1); its next start has registry.example.org/runner:1@sha256:0123" {
		t.Errorf("%+v", c)
	}
	if get[*corev1.Pod](w, thePod).UID != pod.UID || len(s.RestartAwaitingChanges) > 0 || spec.ConditionIsTrue(s.Conditions, spec.ConditionAwaitingRestart) || s.Phase != spec.PhaseRunning {
		t.Errorf("the upgrade touches the machine: %+v", s)
	}
	w.deletePod(get[*corev1.Pod](w, thePod), 30)
	rest()
	w.pass(time.Minute)
	rest()
	if c := upToDate(); c.Status != metav1.ConditionTrue || get[*corev1.Pod](w, thePod).Spec.Containers[0].Image != w.settings.RunnerImage {
		t.Errorf("after its next start: %+v", c)
	}
}

// A runner that says nothing is told of when it should have said something, and
// not any more when it has.
func TestRunnerThatDoesNotReport(t *testing.T) {
	w := newWorld(func(string, int) int { return 0 }, decideOnLess)
	for range 4 {
		w.observeAll()
		w.reconcile(false)
		w.controllers()
		if pod := get[*corev1.Pod](w, thePod); pod != nil && w.guests[pod.UID] == nil {
			w.tend(pod, goodWay)
		}
	}
	started := get[*corev1.Pod](w, thePod).Status.ContainerStatuses[0].State.Running.StartedAt.Time
	w.pass(started.Add(29 * time.Second).Sub(w.now))
	w.observeAll()
	if p := w.reconcile(false); len(p.Events) > 0 || p.Wake.After(started.Add(30*time.Second)) {
		t.Errorf("before its time: %v, wake %v", p.Events, p.Wake)
	}
	w.pass(time.Second)
	w.observeAll()
	p := w.reconcile(false)
	reason, message := said(p, spec.ConditionPodReady)
	if reason != spec.ReasonRunnerNotReporting || len(p.Events) != 1 || p.Events[0].Type != corev1.EventTypeWarning || len(p.Actions) > 0 {
		t.Errorf("%s, %+v", reason, p.Events)
	}
	if !strings.Contains(message, "a network policy is in the way") || !strings.HasPrefix(p.Events[0].Note, message) {
		t.Errorf("the condition says %q", message)
	}
	for _, want := range []string{
		"kubectl auth can-i patch vms.vmoperator.jdrupes.org --subresource=status -n apps --as=system:serviceaccount:apps:vm-runner",
		"kubectl create rolebinding vmop-machines-runner -n apps --clusterrole=vmop-runner --serviceaccount=apps:vm-runner",
		"kubectl logs web -n apps;",
	} {
		if !strings.Contains(p.Events[0].Note, want) {
			t.Errorf("%q is not in %q", want, p.Events[0].Note)
		}
	}
	if reason, _ := said(p, spec.ConditionReady); reason != spec.ReasonRunnerNotReporting {
		t.Errorf("Ready: %s", reason)
	}
	w.observeAll()
	if p := w.reconcile(false); len(p.Events)+len(p.Statuses) > 0 || !p.Wake.IsZero() {
		t.Errorf("it goes on: %+v", p)
	}
	g := w.guests[get[*corev1.Pod](w, thePod).UID]
	g.stage = 2
	w.runnerReports(g)
	w.observeAll()
	if p := w.reconcile(false); p.Statuses[0].Status["ready"] != true {
		t.Errorf("when it reports: %+v", p)
	}
}

// A runner that has reported its machine's end is not one that has not reported,
// though its container is shown as running for another moment.
func TestRunnerThatHasReportedTheEnd(t *testing.T) {
	w := running(t, nil)
	w.pass(time.Minute)
	w.observeAll()
	for _, c := range []struct {
		since time.Duration // the end was reported so long ago
		want  bool
	}{{time.Second, false}, {time.Hour, true}} { // the other one was a former pod's
		p := w.decided(func(s *machine.Snapshot) {
			s.VM = s.VM.DeepCopy()
			st := &s.VM.Status
			st.CPUs, st.RAM, st.RunnerVersion, st.Conditions = 0, nil, "", nil
			for _, t := range spec.ConditionTypes() {
				st.Conditions = spec.WithCondition(st.Conditions, spec.Condition{
					Type: t, Status: metav1.ConditionFalse, Reason: spec.ReasonVMStopped, LastTransitionTime: metav1.NewTime(s.Now.Add(-c.since)),
				})
			}
		})
		warned := slices.ContainsFunc(p.Events, func(e reconcile.Event) bool { return e.Reason == spec.ReasonRunnerNotReporting })
		if reason, _ := said(p, spec.ConditionPodReady); warned != c.want || (reason == spec.ReasonRunnerNotReporting) != c.want {
			t.Errorf("an end %v ago: %s, %+v", c.since, reason, p.Events)
		}
	}
}

// What a namespace lacks is named with the command that makes it, in a line.
func TestNamespaceThatIsNotPrepared(t *testing.T) {
	for _, c := range []struct{ kind, message, command string }{
		{"Pod", `pods "web" is forbidden: error looking up service account apps/vm-runner: serviceaccount "vm-runner" not found`,
			"run: kubectl create serviceaccount vm-runner -n apps && kubectl create rolebinding vmop-machines-runner -n apps --clusterrole=vmop-runner --serviceaccount=apps:vm-runner"},
		{"Secret", `secrets is forbidden: User "system:serviceaccount:vmop-system:vmop-operator" cannot create resource "secrets" in API group "" in the namespace "apps"`,
			"run: kubectl create rolebinding vmop-machines-operator -n apps --clusterrole=vmop-operator-machines --serviceaccount=vmop-system:vmop-operator"},
		{"Secret", `secrets is forbidden: User "ann@example.org" cannot create resource "secrets" in API group "" in the namespace "apps"`,
			"--clusterrole=vmop-operator-machines --user=ann@example.org"},
		{"Secret", `secrets is forbidden: User "x; rm -rf /" cannot create resource "secrets" in API group "" in the namespace "apps"`, ""},
		{"Secret", `admission webhook denied the request`, ""},
	} {
		w := newWorld(func(string, int) int { return 0 }, machine.Decide)
		name := "web"
		if c.kind == "Secret" {
			name = "web-display-secret"
		} else {
			for range 3 {
				w.observeAll()
				s, _ := w.snapshot()
				if p := machine.Decide(s); p.StartsPod() {
					break
				}
				w.reconcile(false)
			}
			w.observeAll()
		}
		target := reconcile.Target{Verb: "create", Kind: c.kind, Name: name}
		p := w.decided(func(s *machine.Snapshot) {
			s.VM.Finalizers = []string{names.FinalizerMachine}
			s.Failures = []reconcile.Failure{{Target: target, Reason: "Forbidden", Message: c.message, Count: 1, Last: w.now}}
		})
		reason, message := said(p, spec.ConditionPodReady)
		want := spec.ReasonNamespaceNotPrepared
		if c.command == "" {
			want = spec.ReasonWriteRefused
		}
		told := slices.ContainsFunc(p.Events, func(e reconcile.Event) bool {
			return e.Reason == want && e.Note == message && e.Related != nil
		})
		if reason != want || !told || !strings.HasSuffix(message, c.command) || c.command != "" && promises.LongMessage(p) != "" {
			t.Errorf("%s\n gives %s: %s: %+v", c.message, reason, message, p.Events)
		}
	}
}

// A machine whose CD is in an image repository that there is not waits for it, and
// any other does not. A pod that was made without it cannot come to have it.
func TestImageRepository(t *testing.T) {
	cd := func(image string) func(*spec.VirtualMachine) {
		return func(vm *spec.VirtualMachine) {
			vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{Cdrom: &spec.Cdrom{Image: image}})
		}
	}
	repository := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: names.ImageRepositoryClaim, Namespace: "apps"}}
	mounts := func(w *world) bool {
		pod := get[*corev1.Pod](w, thePod)
		for _, c := range objects.PodClaims(pod) {
			if c == names.ImageRepositoryClaim {
				return true
			}
		}
		return false
	}
	w := running(t, cd("debian.iso"))
	vm := get[*spec.VirtualMachine](w, theVM)
	c := spec.FindCondition(vm.Status.Conditions, spec.ConditionReady)
	if get[*corev1.Pod](w, thePod) != nil || c.Reason != spec.ReasonImageRepositoryNotFound ||
		c.Message != "namespace apps has no claim vmop-image-repository, which spec.vm.disks[1].cdrom.image is in; run: kubectl apply -n apps -k github.com/vmop/sdk/deploy/image-repository" {
		t.Fatalf("%+v", c)
	}
	w.put("claim/"+names.ImageRepositoryClaim, repository)
	for range 6 {
		w.work()
		w.pass(time.Second)
	}
	if !mounts(w) {
		t.Error("the repository is there and not mounted")
	}
	for _, image := range []string{"", "https://example.org/cd.iso"} {
		w := running(t, cd(image))
		if mounts(w) {
			t.Errorf("%q: the pod waits for a repository", image)
		}
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec.VM.Disks[1].Cdrom.Image = "debian.iso"
		vm.Generation++
		w.put(theVM, vm)
		w.put("claim/"+names.ImageRepositoryClaim, repository.DeepCopy())
		for range 3 {
			w.observeAll()
			w.reconcile(false)
		}
		if s := get[*spec.VirtualMachine](w, theVM).Status; len(s.RestartAwaitingChanges) != 1 || s.RestartAwaitingChanges[0].Path != "spec.vm.disks[1].cdrom.image" {
			t.Errorf("%q: the pod cannot have the new CD: %+v", image, s.RestartAwaitingChanges)
		}
	}
}
