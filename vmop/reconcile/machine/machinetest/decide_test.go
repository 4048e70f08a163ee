package machinetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/internal/promises"
	reasons "github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// fair is a world in which the good way is always chosen.
func fair() *world { return newWorld(func(string, int) int { return 0 }, machine.Decide) }

// running is a world whose machine runs and of which nothing is left to do.
func running(t testing.TB, change func(*spec.VirtualMachine)) *world {
	t.Helper()
	w := fair()
	if change != nil {
		vm := get[*spec.VirtualMachine](w, theVM)
		change(vm)
		w.put(theVM, vm)
	}
	for range 10 {
		w.work()
		w.pass(time.Second)
	}
	w.observeAll()
	return w
}

func (w *world) decided(change func(*machine.Snapshot)) reconcile.Plan {
	s, _ := w.snapshot()
	if change != nil {
		change(&s)
	}
	return machine.Decide(s)
}

// said is what a plan writes to a condition; "" if it does not change it.
func said(p reconcile.Plan, condition string) (reason, message string) {
	for _, st := range p.Statuses {
		for _, v := range st.Status["conditions"].([]any) {
			if c := v.(map[string]any); c["type"] == condition {
				return c["reason"].(string), c["message"].(string)
			}
		}
	}
	return "", ""
}

func targets(p reconcile.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		out = append(out, a.Target().String())
	}
	return out
}

// A new machine that starts at once is created with one write for each object and
// one that holds it, and its status is written once.
func TestFewWrites(t *testing.T) {
	w := fair()
	writes := 0
	for range 10 {
		w.observeAll()
		p := w.reconcile(false)
		writes += len(p.Actions) + len(p.Statuses)
		w.controllers()
		if pod := get[*corev1.Pod](w, thePod); pod != nil {
			w.tend(pod, goodWay)
		}
	}
	if s := get[*spec.VirtualMachine](w, theVM).Status; s.Phase != spec.PhaseRunning || writes != 7 {
		t.Errorf("%d writes, phase %s", writes, s.Phase)
	}
}

// A machine that stops at once, and whose runner has said so, is stopped by a deletion
// and a status, which is about the specification that it was stopped for. It is kept up
// when the machine starts again, until the next runner reports.
func TestFewWritesToStop(t *testing.T) {
	w := running(t, nil)
	wants := func(state spec.MachineState) {
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec.VM.State = state
		vm.Generation++
		w.put(theVM, vm)
		w.observeAll()
	}
	wants(spec.StateStopped)
	p := w.reconcile(false)
	writes := len(p.Actions) + len(p.Statuses)
	vm := get[*spec.VirtualMachine](w, theVM)
	var last []any
	for _, c := range spec.ConditionTypes() {
		last = append(last, map[string]any{"type": c, "status": "False", "reason": spec.ReasonVMStopped, "message": "it was asked to", "observedGeneration": vm.Generation - 1, "lastTransitionTime": w.now.UTC().Format(time.RFC3339)})
	}
	w.applyStatus(vm, names.RunnerStatusManager, map[string]any{"cpus": 0, "ram": "0", "conditions": last})
	w.put(theVM, vm)
	w.tend(get[*corev1.Pod](w, thePod), goodWay)
	for range 5 {
		w.observeAll()
		p := w.reconcile(false)
		writes += len(p.Actions) + len(p.Statuses)
	}
	lasting := func(when string) {
		t.Helper()
		vm := get[*spec.VirtualMachine](w, theVM)
		for _, name := range spec.ConditionTypes() {
			if c := spec.FindCondition(vm.Status.Conditions, name); c == nil || c.Message != "it was asked to" || c.ObservedGeneration < 2 {
				t.Errorf("%s: %s is %+v", when, name, c)
			}
		}
	}
	if phase := get[*spec.VirtualMachine](w, theVM).Status.Phase; phase != spec.PhaseStopped || writes != 2 {
		t.Errorf("%d writes, phase %s", writes, phase)
	}
	lasting("stopped")
	wants(spec.StateRunning)
	w.reconcile(false)
	w.pass(15 * time.Second) // so that what it waits for is told
	w.observeAll()
	if p := w.reconcile(false); len(p.Statuses) != 1 || p.Statuses[0].ResourceVersion == "" {
		t.Errorf("the operator does not report, or might undo what a runner reports: %+v", p.Statuses)
	}
	lasting("starting")
}

// What is observed of a pod may be behind what is observed of its machine.
func TestStoppedReportWaitsForPod(t *testing.T) {
	w := running(t, nil)
	gone := func(s *machine.Snapshot) { setPod(s, nil) }
	at := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionRunning).LastTransitionTime.Time
	w.now = at.Add(10 * time.Second)
	p := w.decided(gone)
	for _, st := range p.Statuses {
		if st.Manager == names.RunnerStatusManager {
			t.Errorf("a machine that has just reported to run is reported as stopped: %v", st.Status)
		}
	}
	if len(p.Actions) > 0 || p.Wake.IsZero() || p.Wake.After(at.Add(30*time.Second)) {
		t.Errorf("actions %v, wake %v", targets(p), p.Wake)
	}
	w.now = at.Add(30 * time.Second)
	p = w.decided(func(s *machine.Snapshot) {
		gone(s)
		s.VM = s.VM.DeepCopy()
		s.VM.Status.GuestPanics = 3
	})
	if len(p.Statuses) > 0 && p.Statuses[0].Status["guestPanics"] != int64(3) {
		t.Errorf("the panics of the run that has ended are not in %v", p.Statuses[0].Status)
	}
	if len(p.Statuses) != 2 || p.Statuses[0].Manager != names.RunnerStatusManager || p.Statuses[0].ResourceVersion == "" {
		t.Errorf("nobody reports that the machine has stopped: %+v", p.Statuses)
	}
}

// The status of a machine that VM-Operator's runner wrote is corrected, and
// that is the end of it, although its fields are not ours to remove.
func TestStoppedReportOfForeignFields(t *testing.T) {
	w := running(t, func(vm *spec.VirtualMachine) { vm.Spec.VM.State = spec.StateStopped })
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Status.LoggedInUser, vm.Status.ConsoleClient, vm.Status.RunnerVersion = "joe", "10.0.0.9", "4.0.2"
	vm.Status.OSInfo = &runtime.RawExtension{Raw: []byte(`{"name":"Debian"}`)}
	vm.Status.CPUs = 2
	w.put(theVM, vm)
	w.observeAll()
	w.reconcile(false)
	w.observeAll()
	if p := w.decided(nil); len(p.Statuses) > 0 {
		t.Errorf("it goes on: %v", p.Statuses)
	}
	s := get[*spec.VirtualMachine](w, theVM).Status
	if s.LoggedInUser != "" || s.ConsoleClient != "" || s.RunnerVersion != "" || s.CPUs != 0 {
		t.Errorf("%+v", s)
	}
}

func TestClaims(t *testing.T) {
	other := objects.InstanceLabels("other")
	tests := []struct {
		name     string
		change   func(*corev1.PersistentVolumeClaim)
		reason   string
		startsIt bool
	}{
		{"of another machine", func(c *corev1.PersistentVolumeClaim) { c.Labels = other }, spec.ReasonClaimOfOtherMachine, false},
		{"prepared by a person", func(c *corev1.PersistentVolumeClaim) { c.Labels = nil }, spec.ReasonBlockDevicesReady, true},
		{"being deleted", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }, spec.ReasonClaimTerminating, false},
		{"lost", func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }, spec.ReasonClaimLost, false},
		{"waiting for its first consumer", func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }, spec.ReasonBlockDevicesNotReady, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := running(t, func(vm *spec.VirtualMachine) { vm.Spec.VM.State = spec.StateStopped })
			p := w.decided(func(s *machine.Snapshot) {
				s.VM.Spec.VM.State, s.VM.Finalizers = spec.StateRunning, []string{names.FinalizerMachine}
				for i := range s.Claims {
					if s.Claims[i].Name == "web-system-disk" {
						tt.change(&s.Claims[i])
					}
				}
			})
			if reason, message := said(p, spec.ConditionBlockDevicesReady); reason != tt.reason {
				t.Errorf("%s: %s", reason, message)
			}
			if starts := slices.Contains(targets(p), "create Pod web"); starts != tt.startsIt {
				t.Errorf("%v", targets(p))
			}
			for _, a := range p.Actions {
				if u, is := a.(reconcile.UpdateClaim); is && tt.reason == spec.ReasonClaimOfOtherMachine {
					t.Errorf("the claim of another machine is written: %+v", u)
				}
			}
		})
	}
}

// A machine that has the claim of a VirtualDisk waits until the disk is in it.
func TestWaitsForVirtualDisk(t *testing.T) {
	block, file := corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem
	for _, tt := range []struct {
		name    string
		mode    *corev1.PersistentVolumeMode
		filled  string
		starts  bool
		byClaim bool
		source  bool
	}{
		{name: "a block device with a source", mode: &block, source: true}, {name: "one with it", mode: &block, source: true, filled: "u1", starts: true},
		{name: "a file that is not there", mode: &file}, {name: "the same, of a claim without a mode"},
		{name: "a file", mode: &file, filled: "u1", starts: true}, {name: "a block device", mode: &block, starts: true},
		{name: "a file that is not there, by its claim", mode: &file, byClaim: true},
		{name: "a file, by its claim", mode: &file, filled: "u1", starts: true, byClaim: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := spec.NewDisk("apps", "data", quantity("1Gi"))
			d.UID = "u1"
			if tt.source {
				d.Spec.PersistentVolumeClaim.VolumeMode, d.Spec.DataSource = tt.mode, &spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: "http://images.test/a"}}
			}
			c := objects.FilledDisk(d).VolumeClaim()
			c.UID, c.Status.Phase, c.Spec.VolumeMode = "u2", corev1.ClaimBound, tt.mode
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: quantity("2Gi")}
			if tt.filled != "" {
				c.Annotations[names.AnnotationFilled] = tt.filled
			}
			w := running(t, func(vm *spec.VirtualMachine) { vm.Spec.VM.State = spec.StateStopped })
			c.Namespace = get[*spec.VirtualMachine](w, theVM).Namespace
			w.put("claim/"+c.Name, machine.CondenseClaim(c))
			vm := get[*spec.VirtualMachine](w, theVM)
			vm.Spec.VM.State, vm.Generation = spec.StateRunning, vm.Generation+1
			vm.Spec.BlockDeviceRefs = []spec.BlockDeviceRef{{Kind: spec.KindDisk, Name: "data"}}
			if tt.byClaim {
				vm.Spec.BlockDeviceRefs = nil
				vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: c.Name}})
			}
			w.put(theVM, vm)
			for range 10 {
				w.observeAll()
				w.work()
			}
			// What the image lacks is added at the start.
			config := get[*corev1.ConfigMap](w, theConfig)
			if grows := strings.Contains(config.Data[names.ConfigKey], `growTo: "1 GiB"`); grows != tt.starts {
				t.Errorf("it grows: %t\n%s", grows, config.Data[names.ConfigKey])
			}
			if starts := get[*corev1.Pod](w, thePod) != nil; starts != tt.starts {
				t.Errorf("there is a pod: %t", starts)
			}
			for _, kind := range []string{spec.ConditionBlockDevicesReady, spec.ConditionPodReady, spec.ConditionReady} {
				got := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, kind)
				if !tt.starts && (got.Reason != spec.ReasonBlockDevicesNotReady || !strings.Contains(got.Message, "kubectl describe vd data")) {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}

// A claim grows when it is bound, which Kubernetes asks for.
func TestPendingClaimDoesNotGrow(t *testing.T) {
	for phase, grows := range map[corev1.PersistentVolumeClaimPhase]bool{corev1.ClaimPending: false, corev1.ClaimBound: true} {
		w := running(t, nil)
		p := w.decided(func(s *machine.Snapshot) {
			s.VM.Spec.VM.Disks[0].VolumeClaimTemplate.Spec.Resources.Requests[corev1.ResourceStorage] = quantity("5Gi")
			for i := range s.Claims {
				s.Claims[i].Status.Phase = phase
			}
		})
		if got := slices.Contains(targets(p), "patch PersistentVolumeClaim web-system-disk"); got != grows {
			t.Errorf("%s: %v", phase, targets(p))
		}
	}
}

// Failures in a row are counted, and three things begin a new row: a long run,
// an ordinary end, and another specification.
func TestFailuresInARow(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for _, tt := range []struct {
		name       string
		cause      runnerconfig.Cause
		ran        time.Duration
		generation int64
		want       int32
	}{
		{"another failure", runnerconfig.CauseQEMUFailure, 5 * time.Minute, 1, 4},
		{"after a long run", runnerconfig.CauseQEMUFailure, 10 * time.Minute, 1, 1},
		{"of another specification", runnerconfig.CauseQEMUFailure, time.Minute, 2, 1},
		{"an ordinary end", runnerconfig.CauseGuestShutdown, time.Minute, 1, 0},
		{"an ordinary end that comes too soon", runnerconfig.CauseGuestShutdown, 59 * time.Second, 1, 4},
	} {
		w := running(t, nil)
		w.now = now
		p := w.decided(func(s *machine.Snapshot) {
			s.VM.Generation = tt.generation
			s.VM.Status.LastEnd = &spec.MachineEnd{PodUID: "former", Failures: 3, ObservedGeneration: 1}
			s.Pod().Status.Phase = corev1.PodFailed
			s.Pod().Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Message: outcome(tt.cause), StartedAt: metav1.NewTime(now.Add(-tt.ran)), FinishedAt: metav1.NewTime(now),
			}}
		})
		end, _ := p.Statuses[len(p.Statuses)-1].Status["lastEnd"].(map[string]any)
		if got, _ := end["failures"].(int64); int32(got) != tt.want || end["podUID"] == "former" {
			t.Errorf("%s: %v, want %d failures", tt.name, end, tt.want)
		}
		kind := corev1.EventTypeWarning
		if tt.cause == runnerconfig.CauseGuestShutdown {
			kind = corev1.EventTypeNormal // a start that comes later, and no failure
		}
		if e := p.Events[len(p.Events)-1]; e.Type != kind {
			t.Errorf("%s: want a %s event: %+v", tt.name, kind, e)
		}
	}
}

// A pod that has not started is made anew for a change that it could not follow.
func TestPendingPodIsReplaced(t *testing.T) {
	w := fair()
	w.work()
	w.observeAll()
	w.reconcile(false)
	if pod := get[*corev1.Pod](w, thePod); pod == nil || w.guests[pod.UID] != nil {
		t.Fatalf("%+v", pod)
	}
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.MaximumCPUs = new(int32(7))
	vm.Generation++
	w.put(theVM, vm)
	w.observeAll()
	w.reconcile(false) // the configuration
	w.observeAll()
	if p := w.decided(nil); !slices.Contains(targets(p), "delete Pod web") {
		t.Errorf("%v", targets(p))
	}
}

// A request that is taken back asks for nothing, and neither does one that was
// counted.
func TestResetRequests(t *testing.T) {
	w := running(t, nil)
	for i, tt := range []struct {
		request string
		want    int
	}{{"a", 1}, {"a", 1}, {"", 1}, {"a", 1}, {"b", 2}} {
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Annotations = map[string]string{names.AnnotationResetRequest: tt.request}
		if tt.request == "" {
			vm.Annotations = nil
		}
		w.put(theVM, vm)
		w.observeAll()
		w.reconcile(false)
		if got := resets(get[*corev1.ConfigMap](w, theConfig)); got != tt.want {
			t.Errorf("%d, %q: %d resets, want %d", i, tt.request, got, tt.want)
		}
	}
}

// Nobody relies on what somebody else wrote to the pod.
func TestStartedManifestUnreadable(t *testing.T) {
	for _, text := range []string{"", "{", `{"generation":9}`, "null"} {
		w := running(t, nil)
		p := w.decided(func(s *machine.Snapshot) { s.Pod().Annotations[names.AnnotationStarted] = text })
		if reason, _ := said(p, spec.ConditionAwaitingRestart); reason != spec.ReasonUnexpectedState {
			t.Errorf("%q: %s", text, reason)
		}
	}
}

// The claim of a shared folder is waited for like that of a disk, and a machine that
// has it is no reason for another one not to start.
func TestSharedClaim(t *testing.T) {
	w := fair()
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.Shares = []spec.Share{{Tag: "src", PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "folder"}}}
	w.put(theVM, vm)
	for range 4 { // the claims of disks are made and bound
		w.observeAll()
		w.controllers()
		w.reconcile(false)
	}
	w.observeAll()
	c := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionBlockDevicesReady)
	if want := "claim folder of spec.vm.shares[0] does not exist; create it or correct the name"; c.Reason != spec.ReasonClaimNotFound || c.Message != want {
		t.Errorf("%+v", c)
	}
	if pod := get[*corev1.Pod](w, thePod); pod != nil {
		t.Errorf("there is a pod, which waits for it")
	}
	folder := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "folder", Namespace: "apps"}}
	for phase, want := range map[corev1.PersistentVolumeClaimPhase]string{
		corev1.ClaimPending: spec.ReasonBlockDevicesNotReady, corev1.ClaimLost: spec.ReasonClaimLost, corev1.ClaimBound: spec.ReasonBlockDevicesReady,
	} {
		folder.Status.Phase = phase
		if reason, message := said(w.decided(func(s *machine.Snapshot) { s.Claims = append(s.Claims, folder) }), spec.ConditionBlockDevicesReady); reason != want {
			t.Errorf("%s: %s: %s", phase, reason, message)
		}
	}
	if names := objects.ClaimNames(vm); slices.Contains(names, "folder") {
		t.Errorf("%q are for one machine alone", names)
	}
}

// The mode of a claim that a disk refers to decides how pod and runner use it.
func TestReferencedClaim(t *testing.T) {
	w := fair()
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "data"}})
	w.put(theVM, vm)
	for range 2 {
		w.observeAll()
		w.reconcile(false)
	}
	w.observeAll()
	c := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionPodReady)
	if p := w.decided(nil); c.Reason != spec.ReasonClaimNotFound || len(p.Actions) > 0 {
		t.Errorf("%+v, %v", c, targets(p))
	}
	mode := corev1.PersistentVolumeFilesystem
	w.put("claim/data", &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeMode: &mode}})
	for range 3 {
		w.observeAll()
		w.controllers()
		w.reconcile(false)
	}
	cm, pod := get[*corev1.ConfigMap](w, theConfig), get[*corev1.Pod](w, thePod)
	if file := "/var/local/vmop-disks/data-claim/disk.img"; !strings.Contains(cm.Data[names.ConfigKey], file) {
		t.Errorf("%s", cm.Data[names.ConfigKey])
	}
	if pod == nil || !slices.ContainsFunc(pod.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "data-claim" }) {
		t.Errorf("%+v", pod)
	}
	if claim := get[*corev1.PersistentVolumeClaim](w, "claim/data"); claim.Labels != nil {
		t.Errorf("somebody else's claim is labelled: %v", claim.Labels)
	}
}

// Objects of others that happen to have the name are left alone.
func TestNameTaken(t *testing.T) {
	w := fair()
	w.settings.LoadBalancer = &objects.LoadBalancer{}
	w.put(theConfig, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	w.put(theLB, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	w.put(thePod, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	for range 3 {
		w.observeAll()
		w.reconcile(false)
	}
	w.observeAll()
	if p := w.decided(nil); len(p.Actions) > 0 || p.Wake.IsZero() || p.Wake.After(w.now.Add(time.Minute)) {
		t.Errorf("%v, wake %v", targets(p), p.Wake)
	}
	for _, other := range []string{"pod", "service"} {
		p := w.decided(func(s *machine.Snapshot) {
			s.ConfigMap = nil
			if other != "pod" {
				setPod(s, nil)
			} else {
				s.Service = nil
			}
		})
		if p.Wake.IsZero() || p.Wake.After(w.now.Add(time.Minute)) {
			t.Errorf("nobody looks whether the %s is gone: %v", other, p.Wake)
		}
	}
	if cm := get[*corev1.ConfigMap](w, theConfig); cm.Data != nil || cm.OwnerReferences != nil {
		t.Errorf("somebody's ConfigMap is written over: %+v", cm)
	}
	if p := w.decided(func(s *machine.Snapshot) { s.Settings.LoadBalancer = nil }); len(p.Actions) > 0 {
		t.Errorf("somebody's service goes: %v", targets(p))
	}
	s := get[*spec.VirtualMachine](w, theVM).Status
	for _, c := range []string{spec.ConditionConfigurationApplied, spec.ConditionPodReady} {
		if c := spec.FindCondition(s.Conditions, c); c.Reason != spec.ReasonNameTaken {
			t.Errorf("%+v", c)
		}
	}
}

// So it is with a Secret that has the name of the machine's display secret: it is
// named with whose it is, and nothing is tried again and again.
func TestNameOfTheDisplaySecretTaken(t *testing.T) {
	yes := true
	for _, test := range []struct {
		name  string
		other metav1.ObjectMeta
		whose string
	}{
		{"nobody's", metav1.ObjectMeta{}, "of the machine; rename it"},
		{"a controller's", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Fan", Name: "x"}, {Kind: "Database", Name: "db", Controller: &yes}}}, "(it belongs to Database db)"},
		{"an owner's", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Database", Name: "db"}}}, "(it belongs to Database db)"},
		{"another machine's", metav1.ObjectMeta{Labels: map[string]string{names.LabelName: names.AppName, names.LabelInstance: "mail"}}, "(its labels name mail)"},
		{"a program's", metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}}, "(it is managed by Helm)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := fair()
			for range 3 {
				w.observeAll()
				w.reconcile(false)
			}
			w.observeAll()
			test.other.Name = objects.DisplaySecretName("web")
			p := w.decided(func(s *machine.Snapshot) {
				s.DisplaySecrets, s.SecretInTheWay = nil, machine.CondenseForeign(&test.other)
			})
			for _, a := range p.Actions {
				if k := a.Target().Kind; k == names.KindSecret || k == names.KindPod {
					t.Errorf("%s", a.Target())
				}
			}
			if p.Wake.IsZero() || p.Wake.After(w.now.Add(time.Minute)) {
				t.Errorf("nobody looks whether the Secret is gone: %v", p.Wake)
			}
			told, err := json.Marshal([]any{p.Statuses, p.Events})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{spec.ReasonNameTaken, "Secret " + test.other.Name, test.whose} {
				if !bytes.Contains(told, []byte(want)) {
					t.Errorf("%s lacks %q", told, want)
				}
			}
		})
	}
}

// A pod of others that uses a disk is looked for again, because nobody watches
// it; the end of a runner's is noticed.
func TestPodOfOthersUsesADisk(t *testing.T) {
	w := running(t, nil)
	user := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "backup"}, Spec: corev1.PodSpec{Volumes: get[*corev1.Pod](w, thePod).Spec.Volumes}}
	runner := *user.DeepCopy()
	runner.Labels = get[*corev1.Pod](w, thePod).Labels
	for _, test := range []struct {
		pod  corev1.Pod
		wake time.Time
	}{{user, w.now.Add(10 * time.Second)}, {runner, time.Time{}}} {
		p := w.decided(func(s *machine.Snapshot) {
			s.Pods = []corev1.Pod{test.pod}
			s.VM = s.VM.DeepCopy()
			s.VM.Status = spec.VirtualMachineStatus{}
		})
		if reason, message := said(p, spec.ConditionPodReady); p.StartsPod() || reason != spec.ReasonDisksInUse {
			t.Errorf("%v; %s: %s", targets(p), reason, message)
		}
		if !p.Wake.Equal(test.wake) {
			t.Errorf("labels %v: wake %v, want %v", test.pod.Labels, p.Wake, test.wake)
		}
	}
}

// An end for lack of memory names the limit and the need on a line, and its event what
// to change, whether QEMU was killed alone and the runner told so, or was killed together
// with it, also where the pod is known from a cache that keeps little of it.
func TestOOMKillIsExplained(t *testing.T) {
	for _, condensed := range []bool{false, true} {
		for _, told := range []string{"", qemuKilled()} {
			for _, tt := range []struct{ limit, says, advice string }{
				{"200Mi", "OOMKilled: its memory limit of 200Mi was used up, and it needs up to ", "; raise the default for memory of the namespace's LimitRange"},
				{"", "OOMKilled: its node ran out of memory, and it needs up to ", "; raise spec.resources.requests.memory"},
			} {
				p := decidedOnKill(t, "OOMKilled", told, tt.limit, condensed)
				_, message := said(p, spec.ConditionPodReady)
				if !strings.Contains(message, tt.says) {
					t.Errorf("condensed %v, told %q: want %q: %s", condensed, told, tt.says, message)
				}
				_, says, _ := strings.Cut(tt.says, ": ")
				if e := p.Events[len(p.Events)-1]; e.Reason != "OOMKilled" || !strings.Contains(e.Note, says) || !strings.Contains(e.Note, tt.advice) {
					t.Errorf("condensed %v, told %q: want %q and %q: %s: %s", condensed, told, says, tt.advice, e.Reason, e.Note)
				}
				if long := promises.LongMessage(p); long != "" {
					t.Errorf("%d bytes: %s", len(long), long)
				}
			}
		}
	}
}

// A QEMU that somebody has killed was not out of memory, and nor was one that ended by
// itself in a pod in which another process was.
func TestOtherKillsAreNoOOMKills(t *testing.T) {
	failed := string(runnerconfig.Outcome{Cause: runnerconfig.CauseQEMUFailure, Message: "qemu ended: exit status 1", QEMUStatus: "exit status 1"}.TerminationMessage())
	for reason, told := range map[string]string{"Error": qemuKilled(), "OOMKilled": failed} {
		p := decidedOnKill(t, reason, told, "200Mi", false)
		if _, message := said(p, spec.ConditionPodReady); !strings.Contains(message, "qemu-failure: qemu ended: ") {
			t.Errorf("%s: %s", reason, message)
		}
	}
}

// qemuKilled is what the runner leaves when somebody has killed QEMU.
func qemuKilled() string {
	return string(runnerconfig.Outcome{Cause: runnerconfig.CauseQEMUFailure, Message: "qemu ended: signal: killed", QEMUStatus: runnerconfig.StatusKilled}.TerminationMessage())
}

// decidedOnKill is the plan for a machine whose pod has ended with a reason of the
// kubelet's and what the runner told, under a limit of memory or none.
func decidedOnKill(t *testing.T, reason, told, limit string, condensed bool) reconcile.Plan {
	t.Helper()
	w := running(t, nil)
	pod := get[*corev1.Pod](w, thePod)
	if limit != "" {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
	}
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, Message: told, ExitCode: 137}}
	if condensed {
		pod = machine.CondensePod(pod)
	}
	return w.decided(func(s *machine.Snapshot) { *s.Pod() = *pod })
}

// What keeps a pod from running is said with what can be done.
func TestPodProblems(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}
	}
	terminated := func(reason, message string, code int32) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "web", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, Message: message, ExitCode: code}},
		}}}
	}
	tests := []struct {
		status          corev1.PodStatus
		reason, message string
		event           string
	}{
		{corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient memory.",
		}}}, "Unschedulable", "3 Insufficient memory; make room", ""}, // it may pass
		{waiting("ImagePullBackOff", "not found"), "ImagePullBackOff", "correct spec.image", "ImagePullBackOff"},
		{waiting("InvalidImageName", "bad"), "InvalidImageName", "correct spec.image", "InvalidImageName"},
		{waiting("CreateContainerConfigError", `secret "x" not found`), "CreateContainerConfigError", "create what is missing", "CreateContainerConfigError"},
		{waiting("RunContainerError", "exec"), "RunContainerError", "kubectl describe pod web", "RunContainerError"},
		{waiting("ContainerCreating", ""), spec.ReasonPodNotStarted, "is being started on node n1", ""},
		{corev1.PodStatus{Phase: corev1.PodPending}, spec.ReasonPodNotStarted, "is being started on node n1", ""},
		{corev1.PodStatus{Phase: corev1.PodUnknown}, spec.ReasonPodNotStarted, "", ""},
		{corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}, spec.ReasonPodFinished, "Evicted: low on memory", "Evicted"},
		{corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded"}, spec.ReasonPodFinished, "DeadlineExceeded", "DeadlineExceeded"},
		{corev1.PodStatus{Phase: corev1.PodFailed}, spec.ReasonPodFinished, "did not say why", "PodFailed"},
		{terminated("OOMKilled", "", 137), spec.ReasonPodFinished, "OOMKilled: its node ran out of memory, and it needs up to ", "OOMKilled"},
		{terminated("Unknown", "", 255), spec.ReasonPodFinished, "ContainerStatusUnknown: its node does not know how the runner ended", "ContainerStatusUnknown"},
		{
			terminated("ContainerStatusUnknown", "The container could not be located when the pod was terminated", 137),
			spec.ReasonPodFinished, "ContainerStatusUnknown: its node does not know how the runner ended", "ContainerStatusUnknown",
		},
		{terminated("ContainerCannotRun", "no such file", 128), spec.ReasonPodFinished, "ContainerCannotRun: no such file", "ContainerCannotRun"},
		{terminated("Error", outcome(runnerconfig.CauseStartFailure), 1), spec.ReasonPodFinished, "start-failure: it ended", "StartFailure"},
	}
	for _, tt := range tests {
		w := running(t, nil)
		p := w.decided(func(s *machine.Snapshot) {
			s.Pod().Status = tt.status
		})
		reason, message := said(p, spec.ConditionPodReady)
		if reason != tt.reason || !strings.Contains(message, tt.message) {
			t.Errorf("%+v: %s: %s", tt.status, reason, message)
		}
		if tt.event == "" && len(p.Events) > 0 || tt.event != "" && (len(p.Events) != 1 || p.Events[0].Reason != tt.event) {
			t.Errorf("%s: %v", tt.reason, p.Events)
		}
		if len(p.Actions) > 0 {
			t.Errorf("%s: %v", tt.reason, targets(p))
		}
	}
}

func TestNodeLost(t *testing.T) {
	w := running(t, nil)
	p := w.decided(func(s *machine.Snapshot) {
		s.Pod().Status.ContainerStatuses[0].Ready = true
		s.Pod().Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	})
	if reason, message := said(p, spec.ConditionPodReady); reason != spec.ReasonNodeLost || len(p.Actions) > 0 {
		t.Errorf("%s: %s, %v", reason, message, targets(p))
	}
	if reason, message := said(p, spec.ConditionAccelerated); reason != spec.ReasonNodeLost || strings.Contains(message, "does not execute") {
		t.Errorf("%s: %s", reason, message)
	}
	for _, st := range p.Statuses {
		if st.Manager == names.OperatorStatusManager && (st.Status["phase"] != spec.PhaseUnknown || st.Status["ready"] != false) {
			t.Errorf("phase %v, ready %v of a machine that nobody hears of", st.Status["phase"], st.Status["ready"])
		}
	}
}

// ending deletes the pod of a machine, whose container is said to run. It has a minute left, and as
// much less as it is late.
func ending(state spec.MachineState, late time.Duration, ready corev1.ConditionStatus) func(*machine.Snapshot) {
	return func(s *machine.Snapshot) {
		s.VM.Spec.VM.State = state
		deadline := metav1.NewTime(s.Now.Add(time.Minute - late))
		s.Pod().DeletionTimestamp = &deadline
		s.Pod().Status.ContainerStatuses[0].Ready = true
		s.Pod().Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	}
}

// A pod that is to go, on a node that does not report, says why it stays, whether its
// machine is to run or not, and by which command it goes when it should be gone.
func TestNodeLostWhileItsPodGoes(t *testing.T) {
	for _, state := range []spec.MachineState{spec.StateRunning, spec.StateStopped} {
		for late, says := range map[time.Duration]string{
			0:             "node n1 does not report about pod web, which is being deleted; repair the node: the machine may still run there",
			2 * time.Hour: "; if node n1 is off for certain: kubectl delete pod web --force",
		} {
			p := running(t, nil).decided(ending(state, late, corev1.ConditionFalse))
			for _, condition := range []string{spec.ConditionPodReady, spec.ConditionReady} {
				if reason, message := said(p, condition); reason != spec.ReasonNodeLost || !strings.Contains(message, says) {
					t.Errorf("%s, %s late: %s: %s: %s", state, late, condition, reason, message)
				}
			}
		}
	}
}

// Kubernetes does not mark the pods of a node that goes silent when it was not ready before. Such
// a pod is known to be lost when its end should have been reported.
func TestNodeLostWithoutAMark(t *testing.T) {
	for _, state := range []spec.MachineState{spec.StateRunning, spec.StateStopped} {
		for late, want := range map[time.Duration]struct{ phase, reason, says string }{
			0:             {spec.PhaseStopping, spec.ReasonPodTerminating, "pod web is being deleted"},
			2 * time.Hour: {spec.PhaseUnknown, spec.ReasonNodeLost, "node n1 has not reported the end of pod web, which should be gone since "},
		} {
			p := running(t, nil).decided(ending(state, late, corev1.ConditionTrue))
			for _, condition := range []string{spec.ConditionPodReady, spec.ConditionReady} {
				if reason, message := said(p, condition); reason != want.reason || !strings.Contains(message, want.says) {
					t.Errorf("%s, %s late: %s: %s: %s", state, late, condition, reason, message)
				}
			}
			for _, st := range p.Statuses {
				if st.Manager == names.OperatorStatusManager && st.Status["phase"] != want.phase {
					t.Errorf("%s, %s late: phase %v", state, late, st.Status["phase"])
				}
			}
		}
	}
}

// While a node does not report, nobody says that its machine runs; when it does
// again, the machine runs as before, although its runner has nothing new to say.
func TestNodeThatReturns(t *testing.T) {
	w := running(t, nil)
	status := func(ready corev1.ConditionStatus) *spec.VirtualMachineStatus {
		t.Helper()
		pod := get[*corev1.Pod](w, thePod)
		pod.Status.ContainerStatuses[0].Ready = true
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		w.put(thePod, pod)
		w.pass(time.Second)
		for range 3 {
			w.observeAll()
			w.reconcile(false)
		}
		w.observeAll()
		if p := w.decided(nil); len(p.Statuses) > 0 {
			t.Errorf("it goes on: %v", p.Statuses)
		}
		return &get[*spec.VirtualMachine](w, theVM).Status
	}
	for _, round := range []struct {
		podReady, ready, running corev1.ConditionStatus
		phase                    string
	}{
		{corev1.ConditionFalse, corev1.ConditionUnknown, corev1.ConditionUnknown, spec.PhaseUnknown},
		{corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionTrue, spec.PhaseRunning},
		{corev1.ConditionFalse, corev1.ConditionUnknown, corev1.ConditionUnknown, spec.PhaseUnknown},
	} {
		s := status(round.podReady)
		ready, runs := spec.FindCondition(s.Conditions, spec.ConditionReady), spec.FindCondition(s.Conditions, spec.ConditionRunning)
		if c := spec.FindCondition(s.Conditions, spec.ConditionGuestExecuting); c == nil || string(c.Status) != string(round.running) {
			t.Errorf("the node's word is %s: %+v", round.podReady, c)
		}
		if string(ready.Status) != string(round.ready) || string(runs.Status) != string(round.running) || s.Phase != round.phase || s.Ready != (round.phase == spec.PhaseRunning) {
			t.Errorf("the node's word is %s: phase %s, Ready %+v, Running %+v", round.podReady, s.Phase, ready, runs)
		}
	}
	// What the runner says then is its own again.
	pod := get[*corev1.Pod](w, thePod)
	g := w.guests[pod.UID]
	g.stage = 2
	w.runnerReports(g)
	s := status(corev1.ConditionTrue)
	if c := spec.FindCondition(s.Conditions, spec.ConditionRunning); c.Status != metav1.ConditionTrue || c.Reason != spec.ReasonVMStarted || s.Phase != spec.PhaseRunning {
		t.Errorf("phase %s, %+v", s.Phase, c)
	}
	if c := spec.FindCondition(s.Conditions, spec.ConditionGuestExecuting); c.Status != metav1.ConditionTrue || c.Reason != spec.ReasonRunning {
		t.Errorf("%+v", c)
	}
}

// What a runner said of a guest that does not execute stays on a node that does not
// report: nobody could say it again when the node returns.
func TestPausedGuestOnALostNode(t *testing.T) {
	w := running(t, nil)
	vm := get[*spec.VirtualMachine](w, theVM)
	paused := spec.Condition{Type: spec.ConditionGuestExecuting, Status: metav1.ConditionFalse, Reason: reasons.ReasonDiskFull, Message: "no space for data", LastTransitionTime: metav1.NewTime(w.now.Truncate(time.Second))}
	vm.Status.Conditions = spec.WithCondition(vm.Status.Conditions, paused)
	w.put(theVM, vm)
	for podReady, phase := range map[corev1.ConditionStatus]string{corev1.ConditionFalse: spec.PhaseUnknown, corev1.ConditionTrue: spec.PhasePaused} {
		pod := get[*corev1.Pod](w, thePod)
		pod.Status.ContainerStatuses[0].Ready = true
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: podReady}}
		w.put(thePod, pod)
		for range 3 {
			w.observeAll()
			w.reconcile(false)
		}
		s := get[*spec.VirtualMachine](w, theVM).Status
		if c := spec.FindCondition(s.Conditions, spec.ConditionGuestExecuting); c == nil || *c != paused || s.Phase != phase {
			t.Errorf("phase %s, %+v", s.Phase, c)
		}
	}
}

// Who keeps up what a runner said of its guest lets go of it when there is no guest: after
// a lost node is gone for good, and where the runner ended when it was back.
func TestGuestOfALostNodeIsGone(t *testing.T) {
	for what, ends := range map[string]func(w *world){
		"its pod is removed": func(w *world) { w.put(thePod, nil) },
		"it is back, and the guest ends": func(w *world) {
			pod := get[*corev1.Pod](w, thePod)
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			w.put(thePod, pod)
			w.observeAll()
			w.reconcile(false)
			vm := get[*spec.VirtualMachine](w, theVM)
			var last []any
			for _, c := range spec.ConditionTypes() {
				last = append(last, map[string]any{"type": c, "status": "False", "reason": spec.ReasonVMStopped, "message": "it ended", "observedGeneration": vm.Generation, "lastTransitionTime": w.now.UTC().Format(time.RFC3339)})
			}
			w.applyStatus(vm, names.RunnerStatusManager, map[string]any{"cpus": 0, "ram": "0", "conditions": last})
			w.put(theVM, vm)
			w.put(thePod, nil)
		},
	} {
		w := running(t, nil)
		pod := get[*corev1.Pod](w, thePod)
		pod.Status.ContainerStatuses[0].Ready = true
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		w.put(thePod, pod)
		w.observeAll()
		w.reconcile(false)
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec.VM.State = spec.StateStopped
		w.put(theVM, vm)
		ends(w)
		for range 5 {
			w.observeAll()
			w.reconcile(false)
		}
		s := get[*spec.VirtualMachine](w, theVM).Status
		if c := spec.FindCondition(s.Conditions, spec.ConditionGuestExecuting); c != nil || s.Phase != spec.PhaseStopped {
			t.Errorf("%s: phase %s, %+v", what, s.Phase, c)
		}
		w.observeAll()
		if p := w.decided(nil); len(p.Statuses) > 0 {
			t.Errorf("%s: it goes on: %v", what, p.Statuses)
		}
	}
}

// The definition dates the conditions of a machine that has never run 1970.
func TestConditionsHaveTrueTimes(t *testing.T) {
	w := fair()
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.State = spec.StateStopped
	vm.CreationTimestamp = metav1.NewTime(w.now.Add(-time.Hour))
	w.put(theVM, vm)
	for range 5 {
		w.work()
	}
	s := get[*spec.VirtualMachine](w, theVM).Status
	for _, name := range spec.ConditionTypes() {
		if c := spec.FindCondition(s.Conditions, name); !c.LastTransitionTime.Equal(&vm.CreationTimestamp) || c.Reason != spec.ReasonCreation {
			t.Errorf("%+v", c)
		}
	}
	if p := w.decided(nil); len(p.Statuses) > 0 {
		t.Errorf("it goes on: %v", p.Statuses)
	}
}

// Between the container's end and the pod's there is nothing to warn of: the
// kubelet tells of both, one after the other.
func TestTheEndOfAContainerIsNoWarning(t *testing.T) {
	w := running(t, nil)
	ended := func(at time.Time) func(*machine.Snapshot) {
		return func(s *machine.Snapshot) {
			s.Pod().Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)}}
		}
	}
	if p := w.decided(ended(w.now)); len(p.Events)+len(p.Statuses)+len(p.Actions) > 0 || p.Wake.IsZero() {
		t.Errorf("%v, %+v", targets(p), p)
	}
	p := w.decided(ended(w.now.Add(-time.Minute)))
	if reason, _ := said(p, spec.ConditionPodReady); reason != spec.ReasonPodFinished || len(p.Events) > 0 {
		t.Errorf("%s, %v", reason, p.Events)
	}
}

// A machine on a bridge has the guest's address, not that of its node.
func TestAddress(t *testing.T) {
	guest := []spec.Interface{
		{Name: "eth0", IPAddresses: []string{"fe80::1/64", "2001:db8::1/64"}},
		{Name: "eth1", IPAddresses: []string{"169.254.1.1/16", "192.0.2.7/24"}},
	}
	for _, tt := range []struct {
		network spec.Network
		want    string
	}{
		{spec.Network{User: &spec.UserNetwork{}}, "10.0.0.1"},
		{spec.Network{Tap: &spec.TapNetwork{}}, "192.0.2.7"},
	} {
		w := running(t, func(vm *spec.VirtualMachine) { vm.Spec.VM.Networks = []spec.Network{tt.network}; spec.Default(vm) })
		p := w.decided(func(s *machine.Snapshot) {
			s.VM.Status.Interfaces = guest
			s.VM.Status.Phase = "" // so that there is something to report
		})
		if len(p.Statuses) != 1 || p.Statuses[0].Status["ipAddress"] != tt.want {
			t.Errorf("%+v, want %s", p.Statuses, tt.want)
		}
	}
}

func TestPaused(t *testing.T) {
	w := running(t, nil)
	for reason, want := range map[string]string{
		"": spec.PhasePaused, reasons.ReasonPaused: spec.PhasePaused, reasons.ReasonDiskFull: spec.PhasePaused, reasons.ReasonStopped: spec.PhasePaused,
		reasons.ReasonDiskError: spec.PhaseDegraded, reasons.ReasonGuestPanicked: spec.PhaseDegraded,
		reasons.ReasonWatchdog: spec.PhaseDegraded, reasons.ReasonInternalError: spec.PhaseDegraded,
		reasons.ReasonQEMUNotResponding: spec.PhaseDegraded,
	} {
		status := metav1.ConditionFalse
		if reason == reasons.ReasonQEMUNotResponding {
			status = metav1.ConditionUnknown
		}
		p := w.decided(func(s *machine.Snapshot) {
			s.VM.Status.Conditions = spec.WithCondition(s.VM.Status.Conditions, spec.Condition{Type: spec.ConditionGuestExecuting, Status: status, Reason: reason})
		})
		if len(p.Statuses) != 1 || p.Statuses[0].Status["phase"] != want || p.Statuses[0].Status["ready"] != false {
			t.Errorf("%s: %+v", reason, p.Statuses)
		}
	}
}

// A machine without KVM keeps the processors that it is to have no more.
func TestKeptCPUs(t *testing.T) {
	w := running(t, nil)
	for _, tt := range []struct {
		accelerator spec.Accelerator
		has         int32
		waits       bool
	}{
		{spec.AcceleratorTCG, 3, true},
		{spec.AcceleratorTCG, 1, false},
		{spec.AcceleratorTCG, 0, false}, // not reported
		{spec.AcceleratorKVM, 3, false},
	} {
		p := w.decided(func(s *machine.Snapshot) {
			s.VM.Status.Accelerator, s.VM.Status.CPUs = string(tt.accelerator), tt.has
		})
		got := ""
		if len(p.Statuses) == 1 && p.Statuses[0].Status["restartAwaitingChanges"] != nil {
			got = fmt.Sprint(p.Statuses[0].Status["restartAwaitingChanges"])
		}
		want := ""
		if tt.waits {
			want = "[map[currentValue:3 desiredValue:1 operation:replace path:spec.vm.currentCpus]]"
		}
		if got != want {
			t.Errorf("%s with %d: %s, want %s", tt.accelerator, tt.has, got, want)
		}
		ends := slices.ContainsFunc(p.Actions, func(a reconcile.Action) bool {
			m, ok := a.(reconcile.Apply)
			return ok && m.Object.GetAnnotations()[names.AnnotationGuestResetEnds] == "true"
		})
		if ends != tt.waits {
			t.Errorf("%s with %d: %v", tt.accelerator, tt.has, p.Actions)
		}
	}
}

// A guest that reboots ends its pod for changes that wait, but not if no other pod
// could follow, and not if a claim would go with the pod.
func TestGuestResetEndsOnlyWhatStartsAgain(t *testing.T) {
	changed := func(s *machine.Snapshot) { s.VM.Spec.VM.MaximumCPUs = new(int32(7)); s.VM.Generation++ }
	for _, tt := range []struct {
		name   string
		change func(*machine.Snapshot)
		ends   bool
	}{
		{"a change", changed, true},
		{"a claim that is not there", func(s *machine.Snapshot) {
			changed(s)
			s.VM.Spec.VM.Disks = append(s.VM.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "missing"}})
		}, false},
		{"a claim that is being deleted", func(s *machine.Snapshot) {
			changed(s)
			s.Claims[0].DeletionTimestamp = new(metav1.NewTime(s.Now))
		}, false},
		{"a claim that is lost", func(s *machine.Snapshot) {
			changed(s)
			s.Claims[0].Status.Phase = corev1.ClaimLost
		}, false},
		{"a disk whose claim is not made yet", func(s *machine.Snapshot) {
			changed(s)
			s.Claims = s.Claims[:len(s.Claims)-1]
		}, false},
	} {
		w := running(t, nil)
		p := w.decided(tt.change)
		ends := slices.ContainsFunc(p.Actions, func(a reconcile.Action) bool {
			m, ok := a.(reconcile.Apply)
			return ok && m.Object.GetAnnotations()[names.AnnotationGuestResetEnds] != ""
		})
		if ends != tt.ends {
			t.Errorf("%s: a reset by the guest ends the machine: %v", tt.name, ends)
		}
	}
}

// Kubernetes takes events of one reason for one, unless they are related to
// different objects.
func TestEventsOfOneReasonAreTold(t *testing.T) {
	p := fair().decided(func(s *machine.Snapshot) {
		s.VM.Finalizers = []string{names.FinalizerMachine}
		for _, target := range []reconcile.Target{
			{Verb: "create", Kind: "Secret", Name: "web-display-secret"},
			{Verb: "create", Kind: "PersistentVolumeClaim", Name: "web-system-disk"},
		} {
			s.Failures = append(s.Failures, reconcile.Failure{Target: target, Reason: "Forbidden", Message: "exceeded quota: q", Count: 1, Last: s.Now})
		}
	})
	var got []string
	for _, e := range p.Events {
		if e.Related == nil {
			t.Fatalf("%+v is about nothing", e)
		}
		got = append(got, e.Reason+" "+e.Related.Kind+" "+e.Related.Name)
	}
	want := []string{"QuotaExceeded Secret web-display-secret", "QuotaExceeded PersistentVolumeClaim web-system-disk"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A machine that is stopped waits for nothing.
func TestStoppedMachineWaitsForNoVolume(t *testing.T) {
	w := fair()
	w.unbound = true
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.VM.State = spec.StateStopped
	w.put(theVM, vm)
	for range 30 {
		w.work()
		w.pass(time.Second)
	}
	w.observeAll()
	p := w.decided(nil)
	vm = get[*spec.VirtualMachine](w, theVM)
	if len(p.Events) > 0 || len(p.Statuses) > 0 || len(vm.Status.Waits) > 0 || !p.Wake.IsZero() {
		t.Errorf("%+v; waits %v", p, vm.Status.Waits)
	}
}

// Who is logged in follows the assignment from a pool that asks for it.
func TestLoginUser(t *testing.T) {
	pool := &spec.VmPool{ObjectMeta: metav1.ObjectMeta{Name: "desktops"}, Spec: spec.VmPoolSpec{LoginOnAssignment: true}}
	tests := []struct {
		name   string
		pool   *spec.VmPool
		asks   bool
		logged bool
	}{
		{"assigned", pool, true, true},
		{"the pool does not ask", pool, false, false},
		{"the pool is gone", nil, true, false},
		{"another pool", &spec.VmPool{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, true, false},
	}
	for _, tt := range tests {
		w := running(t, nil)
		p := w.decided(func(s *machine.Snapshot) {
			s.VM.Status.Assignment = &spec.Assignment{Pool: "desktops", User: "joe"}
			if tt.pool != nil {
				s.Pool = tt.pool.DeepCopy()
				s.Pool.Spec.LoginOnAssignment = tt.asks
			}
		})
		logged := false
		for _, a := range p.Actions {
			if apply, is := a.(reconcile.Apply); is {
				logged = strings.Contains(apply.Object.(*corev1.ConfigMap).Data[names.ConfigKey], "loggedInUser: joe")
			}
		}
		if logged != tt.logged {
			t.Errorf("%s: %v", tt.name, targets(p))
		}
	}
}

// What the pod remembers of the manifest has no secrets of cloud-init in it,
// and their change is noticed all the same.
func TestStartedManifestConceals(t *testing.T) {
	w := running(t, func(vm *spec.VirtualMachine) {
		vm.Spec.CloudInit = &spec.CloudInit{
			MetaData: map[string]string{"key": "secret-1"},
			UserData: &runtime.RawExtension{Raw: []byte(`{"password":"secret-2"}`)},
		}
		vm.Spec.LoggingProperties = "secret-3"
	})
	pod := get[*corev1.Pod](w, thePod)
	if text := pod.Annotations[names.AnnotationStarted]; strings.Contains(text, "secret") || !strings.Contains(text, "cloudInit") {
		t.Errorf("%s", text)
	}
	p := w.decided(func(s *machine.Snapshot) {
		s.VM.Spec.CloudInit.UserData.Raw = []byte(`{"password":"secret-4"}`)
		s.VM.Generation++
	})
	_, message := said(p, spec.ConditionAwaitingRestart)
	if !strings.Contains(message, "spec.cloudInit.userData") {
		t.Errorf("%s", message)
	}
}

// Any machine converges with the first objects that are made for it.
func TestAnyMachine(t *testing.T) {
	seed(t)
	rapid.Check(t, func(t *rapid.T) {
		w := fair()
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec = rapid.OneOf(spectest.VirtualMachine(), spectest.Foreign()).Draw(t, "machine").Spec
		vm.Spec.VM.State = spec.StateRunning
		spec.Default(vm)
		w.put(theVM, vm)
		if rapid.Bool().Draw(t, "load balancer") {
			w.settings.LoadBalancer = &objects.LoadBalancer{Annotations: map[string]string{"a": "b"}}
		}
		w.settings.Allowed.Everything = rapid.Bool().Draw(t, "trusted")
		w.settings.Privileged = rapid.Bool().Draw(t, "privileged")
		w.put("secret/web-display-secret", objects.DisplaySecret(vm, "secret"))
		if d := vm.Spec.VM.Display; d != nil && d.TLS != nil && d.TLS.SecretName != "" {
			w.put("certificate/"+d.TLS.SecretName, certificateSecret("tls.crt", "tls.key"))
		}
		w.provide(vm)
		w.provideBeside(vm)
		valid := len(spec.ValidateStored(vm)) == 0
		allowed := len(objects.Refusals(vm, w.settings)) == 0
		for range 8 {
			w.controllers()
			w.observeAll()
			w.reconcile(false)
			if pod := get[*corev1.Pod](w, thePod); pod != nil {
				if asks := beyond(vm, pod, w.settings); asks != "" && !w.settings.Allowed.Everything {
					t.Fatalf("nothing is allowed, and the pod has %s", asks)
				}
				w.tend(pod, goodWay)
			}
			w.pass(time.Second)
		}
		w.observeAll()
		if p := w.decided(nil); len(p.Actions)+len(p.Statuses)+len(p.Events) > 0 {
			t.Fatalf("it goes on: %v %+v", targets(p), p)
		}
		s := get[*spec.VirtualMachine](w, theVM).Status
		should := (&spec.VirtualMachine{Spec: vm.Spec}).ShouldRun() // by its policy, of which nothing has come yet
		if runs := s.Phase == spec.PhaseRunning; runs != (valid && allowed && should) {
			t.Fatalf("valid is %v, allowed %v, it should run: %v: %+v", valid, allowed, should, s)
		}
	})
}

// provideBeside makes what a drawn machine names beside Secrets: its class, and the claims
// of its disks, its shares and the image repository.
func (w *world) provideBeside(vm *spec.VirtualMachine) {
	if name := vm.Spec.VirtualMachineClassName; name != "" {
		w.classes = true
		w.put("class/"+name, spec.NewClass(name))
	}
	for _, d := range machineconfig.Disks(vm) {
		if d.Claim != "" {
			pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: d.Claim}}
			pvc.Spec.Resources.Requests = corev1.ResourceList{}
			fixture.OfReference(pvc, vm)
			w.put("claim/"+d.Claim, pvc)
		}
	}
	w.put("claim/"+names.ImageRepositoryClaim, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: names.ImageRepositoryClaim}})
	for _, s := range vm.Spec.VM.Shares {
		if c := s.PersistentVolumeClaim; c != nil {
			w.put("claim/"+c.ClaimName, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: c.ClaimName}})
		}
	}
}

// beyond is what a pod has that only an administrator gives; empty if nothing.
func beyond(vm *spec.VirtualMachine, pod *corev1.Pod, s objects.Settings) string {
	c, own := pod.Spec.Containers[0], s.RunnerImage
	if own == "" {
		own = objects.DefaultImage()
	}
	switch {
	case c.Image != own:
		return "the image " + c.Image
	case pod.Spec.NodeName != "" && vm.Spec.NodeName != "":
		return "a place on a node that no scheduler chose"
	case pod.Spec.HostNetwork:
		return "the network of its node"
	case slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return !s.Privileged || c.Name != objects.KVMContainer }):
		return "a container with capabilities"
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil {
			return "the node's " + v.HostPath.Path
		}
	}
	return ""
}

// A machine that VM-Operator stored with more processors and memory than its
// maxima is started as VM-Operator does, and its condition says so; the correction
// waits for no restart.
func TestAStoredMachineIsTakenAsVMOperatorDoes(t *testing.T) {
	w := running(t, func(vm *spec.VirtualMachine) {
		vm.Spec.LoggingProperties = ".level=FINE"
		vm.Spec.VM.MaximumCPUs, vm.Spec.VM.CurrentCPUs = new(int32(2)), new(int32(4))
		vm.Spec.VM.MaximumRAM, vm.Spec.VM.CurrentRAM = new(resource.MustParse("1Gi")), new(resource.MustParse("2Gi"))
	})
	vm := get[*spec.VirtualMachine](w, theVM)
	applied := spec.FindCondition(vm.Status.Conditions, spec.ConditionConfigurationApplied)
	if vm.Status.Phase != spec.PhaseRunning || applied.Status != metav1.ConditionTrue ||
		!strings.Contains(applied.Message, "spec.vm.maximumCpus: is 2 and taken for 4") || !strings.Contains(applied.Message, "spec.vm.currentRam: is 2Gi") ||
		!strings.HasSuffix(applied.Message, "; and 1 more") {
		t.Errorf("%s: %+v", vm.Status.Phase, applied)
	}
	config, _, err := runnerconfig.Parse([]byte(get[*corev1.ConfigMap](w, theConfig).Data[names.ConfigKey]))
	if m := config.Runner.VM; err != nil || m.MaximumCPUs != 4 || m.CurrentCPUs != 4 || m.CurrentRAM != 1<<30 {
		t.Errorf("%v, %+v", err, m)
	}
	vm.Spec.VM.MaximumCPUs, vm.Spec.VM.CurrentRAM = new(int32(4)), new(resource.MustParse("1Gi"))
	vm.Generation++
	w.put(theVM, vm)
	for range 3 {
		w.work()
		w.pass(time.Second)
	}
	s := get[*spec.VirtualMachine](w, theVM).Status
	if c := spec.FindCondition(s.Conditions, spec.ConditionAwaitingRestart); c.Status != metav1.ConditionFalse {
		t.Errorf("%+v", c)
	}
	if c := spec.FindCondition(s.Conditions, spec.ConditionConfigurationApplied); strings.Contains(c.Message, "taken for") ||
		!strings.Contains(c.Message, "spec.loggingProperties: only VM-Operator's runner") {
		t.Errorf("%+v", c)
	}
}

// A template of FreeMarker's is named, with what to do, before a pod exists; one of
// the standard ones is the standard machine.
func TestATemplateOfFreeMarkerIsTold(t *testing.T) {
	w := fair()
	with := func(source string) reconcile.Plan {
		return w.decided(func(s *machine.Snapshot) {
			s.VM = s.VM.DeepCopy()
			s.VM.Spec.RunnerTemplate = &spec.RunnerTemplate{Source: source}
		})
	}
	w.observeAll()
	p := with("my-vm.ftl.yaml")
	reason, message := said(p, spec.ConditionConfigurationApplied)
	if reason != spec.ReasonInvalidSpecification || !strings.Contains(message, "spec.runnerTemplate.source") || !strings.Contains(message, "write a Go text/template") {
		t.Errorf("%s: %s", reason, message)
	}
	if len(p.Actions) > 0 || len(p.Events) != 1 || !strings.HasPrefix(p.Events[0].Note, message) {
		t.Errorf("%v, %+v", targets(p), p.Events)
	}
	if p := with("/opt/vmrunner/templates/Standard-VM-latest.ftl.yaml"); len(p.Actions) == 0 {
		t.Errorf("%+v", p)
	}
}

// A long list of what would be right is in the event; the condition is a line.
func TestLongProblemsAreALine(t *testing.T) {
	for what, invalid := range map[string]func(*spec.VirtualMachineSpec){
		"must be one of QEMU's PCI network cards": func(s *spec.VirtualMachineSpec) {
			s.VM.Networks = []spec.Network{{User: &spec.UserNetwork{Device: "usb-net"}}}
		},
		"spec.loadBalancerService.labels[team]": func(s *spec.VirtualMachineSpec) {
			s.LoadBalancerService = &spec.LoadBalancerService{Labels: map[string]*string{"team": new("a b")}}
		},
	} {
		w := fair()
		w.observeAll()
		var whole error
		p := w.decided(func(s *machine.Snapshot) {
			s.VM = s.VM.DeepCopy()
			invalid(&s.VM.Spec)
			whole = spec.ValidateAmended(s.VM).ToAggregate()
		})
		reason, message := said(p, spec.ConditionConfigurationApplied)
		if reason != spec.ReasonInvalidSpecification || !strings.Contains(message, what) || !strings.HasSuffix(message, "…; correct it") || len(message) > reasons.Line {
			t.Errorf("%s, %d bytes: %s", reason, len(message), message)
		}
		if len(p.Events) != 1 || !strings.Contains(p.Events[0].Note, whole.Error()) {
			t.Errorf("%v is not in %+v", whole, p.Events)
		}
	}
}

// A refusal is told with its setting, lets what runs run, and is over when the
// setting is.
func TestRefusedByTheAdministrator(t *testing.T) {
	w := running(t, func(vm *spec.VirtualMachine) { vm.Spec.NodeName = "control-plane" })
	closed := func(s *machine.Snapshot) { s.Settings.Allowed = objects.Allowed{} }
	p := w.decided(closed)
	reason, message := said(p, spec.ConditionConfigurationApplied)
	if reason != spec.ReasonNotAllowed || !strings.Contains(message, "spec.nodeName") || !strings.Contains(message, "allowNodeName") {
		t.Errorf("%s: %s", reason, message)
	}
	if len(p.Actions) > 0 || len(p.Events) != 1 || p.Events[0].Type != corev1.EventTypeWarning {
		t.Errorf("%v, %v", targets(p), p.Events)
	}
	if p := w.decided(func(s *machine.Snapshot) { setPod(s, nil); closed(s) }); p.StartsPod() {
		t.Error("the machine is started")
	}
	p = w.decided(func(s *machine.Snapshot) { s.Settings.Allowed = objects.Allowed{NodeName: true} })
	if len(p.Actions)+len(p.Events) > 0 {
		t.Errorf("allowed: %v, %v", targets(p), p.Events)
	}
}

func TestLeftovers(t *testing.T) {
	object := func(kind, name string, labels map[string]string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{Kind: kind},
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: "u", Labels: labels, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: names.FieldManager, Operation: "Apply"}},
			},
		}
	}
	// A copy from a backup, or what somebody gave these labels.
	copied := object("ConfigMap", "copied", objects.InstanceLabels("copied"))
	copied.ManagedFields[0].Manager = "backup"
	owned := object("ConfigMap", "gone", objects.InstanceLabels("gone"))
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: spec.KindVirtualMachine}}
	other := object("ConfigMap", "other", objects.InstanceLabels("other"))
	other.OwnerReferences = []metav1.OwnerReference{{APIVersion: spec.GroupVersion().String(), Kind: "AnotherKind"}}
	got := machine.Leftovers([]string{"web"}, []string{"orphan"}, []metav1.PartialObjectMetadata{
		object("ConfigMap", "gone", objects.InstanceLabels("gone")),
		object("StatefulSet", "gone", objects.InstanceLabels("gone")),
		object("ConfigMap", "web", objects.InstanceLabels("web")),
		object("ConfigMap", "theirs", nil),
		object("ConfigMap", "orphan", objects.InstanceLabels("orphan")), // its pod runs on
		object("PersistentVolumeClaim", "gone", objects.InstanceLabels("gone")),
		object("Secret", "gone", objects.InstanceLabels("gone")),
		owned, copied, other,
	})
	want := []machine.Leftover{{Kind: "ConfigMap", Name: "gone", UID: "u"}, {Kind: "StatefulSet", Name: "gone", UID: "u"}}
	if diff := cmp.Diff(want, got); diff != "" || !reflect.DeepEqual(want, got) {
		t.Error(diff)
	}
}

// A pod that no node takes because of a claim says which claim that is; one that no
// node takes for another reason says that, whatever its claims.
func TestPendingClaimIsToldAsOne(t *testing.T) {
	for message, reason := range map[string]string{
		"0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found":       spec.ReasonBlockDevicesNotReady,
		"0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.":       spec.ReasonBlockDevicesNotReady,
		"0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: none": corev1.PodReasonUnschedulable,
	} {
		w := fair()
		w.unbound = true
		for range 5 {
			w.observeAll()
			w.reconcile(false)
		}
		pod := get[*corev1.Pod](w, thePod)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
		w.put(thePod, pod)
		for range 3 {
			w.observeAll()
			w.reconcile(false)
			w.pass(11 * time.Second)
		}
		vm := get[*spec.VirtualMachine](w, theVM)
		c := spec.FindCondition(vm.Status.Conditions, spec.ConditionPodReady)
		if c == nil || c.Reason != reason || reason == spec.ReasonBlockDevicesNotReady && !strings.Contains(c.Message, "claim web-runner-data of the runner's data waits for a volume") {
			t.Errorf("%s: %+v", message, c)
			continue
		}
		if got := machine.ProgressOf(vm).Waiting; got != c.Message {
			t.Errorf("start and list say %q, the condition %q", got, c.Message)
		}
	}
}

// What becomes of a machine that is being deleted, and of its pod.
func TestDeletion(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*machine.Snapshot)
		actions []string
	}{
		"its pod runs":               {func(*machine.Snapshot) {}, []string{"delete Pod web"}},
		"its pod has ended":          {func(s *machine.Snapshot) { s.Pod().Status.Phase = corev1.PodFailed }, []string{"patch VirtualMachine web"}},
		"it has no pod":              {func(s *machine.Snapshot) { setPod(s, nil) }, []string{"patch VirtualMachine web"}},
		"the pod is somebody else's": {func(s *machine.Snapshot) { s.Pod().OwnerReferences[0].UID = "other" }, []string{"patch VirtualMachine web"}},
		"its pod was left already":   {func(s *machine.Snapshot) { s.Pod().OwnerReferences = nil }, []string{"patch Pod web", "patch VirtualMachine web"}},
		"the pod is a copy": {func(s *machine.Snapshot) {
			s.Pod().OwnerReferences, s.Pod().Annotations[names.AnnotationMadeFor] = nil, "other"
		}, []string{"patch VirtualMachine web"}},
		"its node is lost":         {func(s *machine.Snapshot) { s.Pod().Status.Phase = corev1.PodUnknown }, []string{"delete Pod web"}},
		"its pod is being deleted": {func(s *machine.Snapshot) { s.Pod().DeletionTimestamp = &metav1.Time{Time: s.Now} }, nil},
		"nothing of it is understood": {func(s *machine.Snapshot) {
			s.Bare, s.VM.Spec, s.VM.Status = true, spec.VirtualMachineSpec{}, spec.VirtualMachineStatus{}
		}, []string{"delete Pod web"}},
		"an earlier version made it": {func(s *machine.Snapshot) { s.VM.Finalizers = nil }, []string{"delete Pod web"}},
		"its pod is to run on": {func(s *machine.Snapshot) {
			s.VM.Finalizers = append(s.VM.Finalizers, metav1.FinalizerOrphanDependents)
		}, []string{"patch Pod web", "patch VirtualMachine web"}},
		"somebody else keeps it": {func(s *machine.Snapshot) {
			setPod(s, nil)
			s.VM.Finalizers = append(s.VM.Finalizers, "example.org/audit")
		}, []string{"patch VirtualMachine web"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, nil)
			p := w.decided(func(s *machine.Snapshot) {
				s.VM.DeletionTimestamp = &metav1.Time{Time: s.Now}
				tt.change(s)
			})
			if got := targets(p); !slices.Equal(got, tt.actions) {
				t.Errorf("%q, want %q", got, tt.actions)
			}
			for _, a := range p.Actions {
				if f, is := a.(reconcile.SetFinalizers); is && (!f.Releases || slices.Contains(f.Finalizers, names.FinalizerMachine)) {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// Pods that have ended before the machine's last one go before it: left alone, one of them
// would be taken for the last when that is gone, and its end be told and counted again.
func TestEndedPodsGoBeforeTheLastOne(t *testing.T) {
	for name, stopped := range map[string]bool{"it is started again": false, "it is to be stopped": true} {
		t.Run(name, func(t *testing.T) {
			w := running(t, nil)
			pod := get[*corev1.Pod](w, thePod)
			pod.Status.Phase = corev1.PodFailed
			w.put(thePod, pod)
			for range 2 {
				w.observeAll()
				w.reconcile(false)
			}
			w.pass(time.Minute)
			p := w.decided(func(s *machine.Snapshot) {
				if stopped {
					s.VM.Spec.VM.State = spec.StateStopped
				}
				former := func(name string) *corev1.Pod {
					pod := s.Pods[0].DeepCopy()
					pod.Name, pod.UID = name, types.UID(name)
					pod.CreationTimestamp = metav1.NewTime(pod.CreationTimestamp.Add(-time.Hour))
					return pod
				}
				goes, foreign := former("goes"), former("foreign")
				goes.DeletionTimestamp, foreign.OwnerReferences = &metav1.Time{Time: s.Now}, nil
				s.Pods = append(s.Pods, *former("former"), *goes, *foreign)
			})
			if got, want := targets(p), []string{"delete Pod former", "delete Pod web"}; !slices.Equal(got, want) || len(p.Events) > 0 {
				t.Errorf("%q, %v; want %q", got, p.Events, want)
			}
		})
	}
}

// Who ends a machine that should run is told once, and remembered.
func TestDisruptionIsNoted(t *testing.T) {
	w := running(t, nil)
	pod := get[*corev1.Pod](w, thePod)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler", Message: "default-scheduler: preempting to accommodate a higher priority pod",
	})
	w.deletePod(pod, 930)
	events := 0
	for range 3 {
		w.observeAll()
		p := w.reconcile(false)
		for _, e := range p.Events {
			if e.Reason == "PreemptionByScheduler" {
				events++
			}
			if e.Type != corev1.EventTypeNormal {
				t.Errorf("%s", e)
			}
		}
		w.pass(time.Second)
	}
	end := get[*spec.VirtualMachine](w, theVM).Status.LastEnd
	if events != 1 || end == nil || end.Cause != "PreemptionByScheduler" || end.Failures != 0 || end.PodUID != pod.UID {
		t.Errorf("%d events, %+v", events, end)
	}
}
