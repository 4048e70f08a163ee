package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a pod is to a machine follows from what it is, whatever it is called and in which
// order the pods come.
func TestRolesOfPods(t *testing.T) {
	at := func(minute int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC))
		}
	}
	owned := func(by types.UID) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: spec.KindVirtualMachine, Name: "web", UID: by}}
		}
	}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	goes := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }
	uses := func(claim string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		}
	}
	runners := func(p *corev1.Pod) {
		p.Labels = objects.InstanceLabels("web")
		p.Labels[names.LabelComponent] = names.ComponentRunner
	}
	note := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[key] = value
		}
	}
	pod := func(name string, with ...func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name)}}
		for _, f := range with {
			f(&p)
		}
		return p
	}
	const mine = types.UID("u")
	left := func(name string) []func(*corev1.Pod) {
		return []func(*corev1.Pod){runners, note(names.AnnotationOrphaned, "former uid of "+name)}
	}
	for name, test := range map[string]struct {
		pods  []corev1.Pod
		roles []podRole
		about string
		goes  bool // the machine is being deleted
	}{
		"none":                      {nil, []podRole{}, "", false},
		"its own":                   {[]corev1.Pod{pod("web", owned(mine))}, []podRole{roleActive}, "web", false},
		"its own of another name":   {[]corev1.Pod{pod("web-7", owned(mine))}, []podRole{roleActive}, "web-7", false},
		"its own has ended":         {[]corev1.Pod{pod("web", owned(mine), ended)}, []podRole{roleActive}, "web", false},
		"a guest comes before ends": {[]corev1.Pod{pod("a", owned(mine), ended, at(9)), pod("b", owned(mine), at(1))}, []podRole{roleLeftover, roleActive}, "b", false},
		"the last run":              {[]corev1.Pod{pod("a", owned(mine), ended, at(1)), pod("b", owned(mine), ended, at(2))}, []podRole{roleLeftover, roleActive}, "b", false},
		"the older guest":           {[]corev1.Pod{pod("a", owned(mine), at(2)), pod("b", owned(mine), at(1)), pod("c", owned(mine), at(3))}, []podRole{roleTarget, roleActive, roleTarget}, "b", false},
		"the older guest, until it is gone": {[]corev1.Pod{pod("a", owned(mine), at(2)), pod("b", owned(mine), at(1), goes)},
			[]podRole{roleTarget, roleActive}, "b", false},
		"as old as the other":         {[]corev1.Pod{pod("b", owned(mine)), pod("a", owned(mine))}, []podRole{roleTarget, roleActive}, "a", false},
		"somebody's, of the name":     {[]corev1.Pod{pod("web", owned("x"), uses("web-runner-data"))}, []podRole{roleForeign}, "web", false},
		"it does not need the name":   {[]corev1.Pod{pod("web"), pod("web-2", owned(mine))}, []podRole{roleForeign, roleActive}, "web-2", false},
		"somebody's, with a disk":     {[]corev1.Pod{pod("backup", uses("web-runner-data"))}, []podRole{roleSharing}, "", false},
		"of a former one, other name": {[]corev1.Pod{pod("web-1", owned("x"), runners, uses("web-runner-data"))}, []podRole{roleSharing}, "", false},
		"nobody's business":           {[]corev1.Pod{pod("backup", uses("other")), pod("done", uses("web-runner-data"), ended)}, []podRole{roleNone, roleNone}, "", false},
		"orphaned":                    {[]corev1.Pod{pod("web", left("web")...)}, []podRole{roleOrphaned}, "web", false},
		"orphaned, of another name":   {[]corev1.Pod{pod("web-3", left("web-3")...)}, []podRole{roleOrphaned}, "web-3", false},
		"orphaned under another UID":  {[]corev1.Pod{pod("web-3", left("web-4")...)}, []podRole{roleNone}, "", false},
		"orphaned, of another machine": {[]corev1.Pod{pod("db", append(left("db"), func(p *corev1.Pod) { p.Labels[names.LabelInstance] = "db" })...)},
			[]podRole{roleNone}, "", false},
		"nothing is taken over by one that goes": {[]corev1.Pod{pod("web", left("web")...)}, []podRole{roleForeign}, "web", true},
		"its own without the owner":              {[]corev1.Pod{pod("web-5", runners, note(names.AnnotationMadeFor, "u"))}, []podRole{roleMade}, "web-5", true},
	} {
		vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: mine}}
		if test.goes {
			vm.DeletionTimestamp = new(metav1.Now())
		}
		for range test.pods {
			test.pods, test.roles = append(test.pods[1:], test.pods[0]), append(test.roles[1:], test.roles[0])
			s := Snapshot{VM: vm, Pods: test.pods}
			if got := s.roles(); !slices.Equal(got, test.roles) {
				t.Errorf("%s: %v, want %v", name, got, test.roles)
			}
			about := ""
			if p := s.Pod(); p != nil {
				about = p.Name
			}
			if about != test.about {
				t.Errorf("%s: it is about %q, want %q", name, about, test.about)
			}
		}
	}
}

// A status has no room for any number of pods, and always for the active one.
func TestTheActivePodIsInTheStatus(t *testing.T) {
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "apps", UID: "u", Generation: 1, Finalizers: []string{names.FinalizerMachine}}}
	vm.Spec.VM.State = spec.StateRunning
	spec.Default(vm)
	s := Snapshot{VM: vm, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Settings: objects.Settings{Version: "1", Allowed: objects.Allowed{Everything: true}}}
	for i := range spec.MaxVirtualMachinePods + 4 {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%02d", i), Namespace: "apps", UID: types.UID(fmt.Sprint("uid-", i)), CreationTimestamp: metav1.NewTime(s.Now.Add(-time.Minute)),
			OwnerReferences: []metav1.OwnerReference{{Kind: spec.KindVirtualMachine, Name: "web", UID: "u"}},
		}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
		s.Pods = append(s.Pods, pod)
	}
	active := &s.Pods[len(s.Pods)-2]
	active.Status.Phase = corev1.PodRunning
	for _, st := range Decide(s).Statuses {
		all, _ := st.Status["virtualMachinePods"].([]any)
		if st.Manager != names.OperatorStatusManager {
			continue
		}
		if len(all) != spec.MaxVirtualMachinePods {
			t.Errorf("%d pods, want %d", len(all), spec.MaxVirtualMachinePods)
		}
		for _, p := range all {
			if p := p.(map[string]any); p["uid"] == string(active.UID) && p["active"] == true {
				return
			}
		}
	}
	t.Error("the active pod is in no status")
}

// What was begun with a pod stays with it until it has ended, whichever pod is the active
// one and whatever has the machine's name.
func TestThePodSomethingWasBegunWith(t *testing.T) {
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}}
	pod := func(name string, owner types.UID, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name), OwnerReferences: []metav1.OwnerReference{{Kind: spec.KindVirtualMachine, Name: "web", UID: owner}}},
			Status:     corev1.PodStatus{Phase: phase},
		}
	}
	for name, test := range map[string]struct {
		uid  types.UID
		vm   *spec.VirtualMachine
		pods []corev1.Pod
		want string
	}{
		"nothing was begun":                  {"", vm, []corev1.Pod{pod("web-7", "u", corev1.PodRunning)}, "web-7"},
		"it goes on in a pod of any name":    {"uid of web-7", vm, []corev1.Pod{pod("web", "x", corev1.PodRunning), pod("web-7", "u", corev1.PodRunning)}, "web-7"},
		"it goes on beside the active one":   {"uid of web-7", vm, []corev1.Pod{pod("web", "u", corev1.PodRunning), pod("web-7", "u", corev1.PodRunning)}, "web-7"},
		"its pod has ended, there is one":    {"uid of web-7", vm, []corev1.Pod{pod("web", "u", corev1.PodRunning), pod("web-7", "u", corev1.PodFailed)}, "web"},
		"its pod has ended":                  {"uid of web", vm, []corev1.Pod{pod("web", "u", corev1.PodFailed)}, "web"},
		"its pod is gone":                    {"uid of web-7", vm, []corev1.Pod{pod("web", "u", corev1.PodRunning)}, "web"},
		"it goes on after the machine":       {"uid of web-7", nil, []corev1.Pod{pod("web-7", "u", corev1.PodRunning)}, "web-7"},
		"the machine's name, without it":     {"uid of web-7", nil, []corev1.Pod{pod("web", "x", corev1.PodRunning)}, "web"},
		"neither":                            {"uid of web-7", nil, []corev1.Pod{pod("db", "x", corev1.PodRunning)}, ""},
		"somebody else's of another name":    {"", vm, []corev1.Pod{pod("web-7", "x", corev1.PodRunning)}, ""},
		"somebody else's of the name itself": {"", vm, []corev1.Pod{pod("web", "x", corev1.PodRunning)}, "web"},
	} {
		got := ""
		if p := PodWith(test.uid, "web", test.vm, test.pods); p != nil {
			got = p.Name
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
