package machinetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// condensed is a snapshot as one has it who keeps little of each object.
func condensed(s machine.Snapshot) machine.Snapshot {
	if s.ConfigMap != nil {
		s.ConfigMap = machine.CondenseConfigMap(s.ConfigMap)
	}
	if s.Service != nil {
		s.Service = machine.CondenseService(s.Service)
	}
	pods, secrets, claims := s.Pods, s.DisplaySecrets, s.Claims
	s.Pods, s.DisplaySecrets, s.Claims = nil, nil, nil
	for i := range pods {
		s.Pods = append(s.Pods, *machine.CondensePod(&pods[i]))
	}
	for i := range secrets {
		s.DisplaySecrets = append(s.DisplaySecrets, *machine.CondenseSecret(&secrets[i]))
	}
	certificates := s.Certificates
	s.Certificates = nil
	for i := range certificates {
		s.Certificates = append(s.Certificates, *machine.CondenseSecret(&certificates[i]))
	}
	userData, holders := s.UserData, s.UserDataHolders
	s.UserData, s.UserDataHolders = nil, nil
	for i := range userData {
		s.UserData = append(s.UserData, *machine.CondenseSecret(&userData[i]))
	}
	for i := range holders {
		s.UserDataHolders = append(s.UserDataHolders, *machine.CondenseConfigMap(&holders[i]))
	}
	if s.Certificate != nil {
		s.Certificate = machine.CondenseCertificate(s.Certificate)
	}
	for i := range claims {
		s.Claims = append(s.Claims, *machine.CondenseClaim(&claims[i]))
	}
	if s.ImageRepository != nil {
		s.ImageRepository = machine.CondenseClaim(s.ImageRepository)
	}
	return s
}

// decideOnLess decides on condensed objects, which must not make a difference.
func decideOnLess(s machine.Snapshot) reconcile.Plan {
	whole, kept := machine.Decide(s), machine.Decide(condensed(s))
	if !reflect.DeepEqual(whole, kept) {
		panic(violation{"what is kept of objects decides the same", fmt.Sprintf("with whole objects\n%+v\nwith condensed ones\n%+v", whole, kept)})
	}
	decideOnLessNotes(s, whole)
	return kept
}

// decideOnLessNotes decides without what the ConfigMap notes of documents, as an operator
// does that has not noted it: it saves time, and must not make another difference.
func decideOnLessNotes(s machine.Snapshot, noted reconcile.Plan) {
	if s.ConfigMap == nil || s.ConfigMap.Annotations[names.AnnotationDocuments] == "" {
		return
	}
	s.ConfigMap = s.ConfigMap.DeepCopy()
	delete(s.ConfigMap.Annotations, names.AnnotationDocuments)
	if parsed := machine.Decide(s); !reflect.DeepEqual(noted, parsed) {
		panic(violation{"what is noted of documents decides the same", fmt.Sprintf("with the note\n%+v\nwithout\n%+v", noted, parsed)})
	}
}

// Decisions are the same with what is kept of objects, whatever others have
// written into them and however the pod is; and keeping twice is keeping once.
func TestCondensedObjectsDecideTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(func(string, int) int { return 0 }, machine.Decide)
		w.settings.LoadBalancer = &objects.LoadBalancer{Annotations: someAnnotations(t, "load balancer")}
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec.VM.Disks[0].VolumeClaimTemplate.Metadata.Annotations = someAnnotations(t, "template")
		vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "mine"}})
		w.put(theVM, vm)
		mode := rapid.SampledFrom([]corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem}).Draw(t, "mode")
		mine := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "apps"}}
		mine.Spec.VolumeMode, mine.Status.Phase = &mode, corev1.ClaimBound
		w.put("claim/mine", mine)
		for range rapid.IntRange(0, 8).Draw(t, "rounds") {
			w.work()
			w.pass(time.Second)
		}
		w.observeAll()
		for range 5 {
			s, _ := w.snapshot()
			disturb(t, &s)
			small := condensed(s)
			if whole, kept := machine.Decide(s), machine.Decide(small); !reflect.DeepEqual(whole, kept) {
				t.Fatalf("with whole objects\n%+v\nwith condensed ones\n%+v", whole, kept)
			}
			if again := condensed(small); !reflect.DeepEqual(small, again) {
				t.Fatalf("condensed\n%+v\nand once more\n%+v", small, again)
			}
		}
	})
}

// disturb lets others write into objects, and anything happen to the pod.
func disturb(t *rapid.T, s *machine.Snapshot) {
	for _, o := range objectsOf(s) {
		if rapid.Bool().Draw(t, "written by others") {
			a := map[string]string{}
			for _, m := range []map[string]string{o.GetAnnotations(), someAnnotations(t, "others")} {
				for k, v := range m {
					a[k] = v
				}
			}
			o.SetAnnotations(a)
		}
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubelet"}})
	}
	if s.ConfigMap != nil {
		switch rapid.IntRange(0, 4).Draw(t, "content") {
		case 0:
			s.ConfigMap.Data = nil
		case 1:
			s.ConfigMap.Data[names.ConfigKey] = "/Runner: {vm: {uuid: x}, resetCounter: 7}"
		}
		if rapid.IntRange(0, 4).Draw(t, "counter") == 0 {
			s.ConfigMap.Annotations[names.AnnotationResetCounter] = rapid.SampledFrom([]string{"", "x", "3"}).Draw(t, "value")
		}
	}
	if s.Pod() != nil && rapid.IntRange(0, 4).Draw(t, "pod") > 0 {
		s.Pod().Status = somePodStatus(t, s.Pod().Name)
		s.Pod().Spec.Containers[0].Image = "registry.example.org/runner"
	}
	for i := range s.Claims {
		s.Claims[i].Status.Phase = rapid.SampledFrom([]corev1.PersistentVolumeClaimPhase{
			corev1.ClaimBound, corev1.ClaimBound, corev1.ClaimBound, corev1.ClaimPending, corev1.ClaimLost}).Draw(t, "claim")
		s.Claims[i].Spec.VolumeName = "pv-1"
		s.Claims[i].Spec.StorageClassName = rapid.SampledFrom([]*string{nil, new(""), new("local"), new("local")}).Draw(t, "class")
		if rapid.Bool().Draw(t, "provisioned") {
			metav1.SetMetaDataAnnotation(&s.Claims[i].ObjectMeta, rapid.SampledFrom(names.AnnotationsProvisioner).Draw(t, "by"), "example.org/local")
		}
	}
	if s.VM != nil && rapid.Bool().Draw(t, "restart") {
		s.VM = s.VM.DeepCopy()
		metav1.SetMetaDataAnnotation(&s.VM.ObjectMeta, names.AnnotationPowerRequest, machine.Request(machine.VerbRestart, "now"))
	}
}

// objectsOf are the objects of a snapshot but the machine.
func objectsOf(s *machine.Snapshot) []metav1.Object {
	var out []metav1.Object
	for i := range s.Pods {
		out = append(out, &s.Pods[i])
	}
	if s.ConfigMap != nil {
		out = append(out, s.ConfigMap)
	}
	if s.Service != nil {
		out = append(out, s.Service)
	}
	for i := range s.Claims {
		out = append(out, &s.Claims[i])
	}
	for i := range s.DisplaySecrets {
		out = append(out, &s.DisplaySecrets[i])
	}
	return out
}

func someAnnotations(t *rapid.T, label string) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{
		"mine", corev1.LastAppliedConfigAnnotation, "pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node",
		"k8s.v1.cni.cncf.io/network-status", "vmoperator.jdrupes.org/version",
	}), rapid.SampledFrom([]string{"yes", "no"}), 0, 4).Draw(t, label)
}

func somePodStatus(t *rapid.T, container string) corev1.PodStatus {
	s := corev1.PodStatus{
		Phase:  rapid.SampledFrom([]corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown}).Draw(t, "phase"),
		Reason: rapid.SampledFrom([]string{"", "", "", "Evicted", "NodeLost"}).Draw(t, "reason"), PodIP: "10.0.0.7", HostIP: "10.0.0.1", QOSClass: corev1.PodQOSBurstable,
	}
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized} {
		if rapid.Bool().Draw(t, "condition") {
			s.Conditions = append(s.Conditions, corev1.PodCondition{
				Type: c, Status: rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "status"),
				Reason: "Unschedulable", Message: "0/3 nodes are available.",
			})
		}
	}
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	for range rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "containers") {
		c := corev1.ContainerStatus{
			Name: rapid.SampledFrom([]string{container, "istio"}).Draw(t, "container"), Image: "i", ImageID: "id", ContainerID: "c",
			Ready: rapid.Bool().Draw(t, "ready"), RestartCount: int32(rapid.IntRange(0, 1).Draw(t, "restarts")),
		}
		state := func(label string) (s corev1.ContainerState) {
			switch rapid.IntRange(0, 3).Draw(t, label) {
			case 0:
				s.Running = &corev1.ContainerStateRunning{StartedAt: at}
			case 1:
				s.Waiting = &corev1.ContainerStateWaiting{Reason: rapid.SampledFrom([]string{
					"ContainerCreating", "ImagePullBackOff", "CreateContainerConfigError", "CrashLoopBackOff"}).Draw(t, "waiting"), Message: "why"}
			case 2:
				s.Terminated = &corev1.ContainerStateTerminated{ExitCode: 4, Reason: "Error", StartedAt: at, FinishedAt: at, Message: "ended"}
			}
			return s
		}
		c.State, c.LastTerminationState = state("state"), state("before")
		s.ContainerStatuses = append(s.ContainerStatuses, c)
	}
	return s
}
