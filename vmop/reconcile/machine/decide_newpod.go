package machine

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
)

// nextPod is the name of the pod that the machine gets next.
func (d *decision) nextPod() string { return objects.PodName(d.vm.Name) }

// newPod is the pod, with what must be known about it later.
func (d *decision) newPod() *corev1.Pod {
	pod := d.plainPod()
	reconcile.Stamp(pod)
	// Neither is in the digest: disks come and go while the pod is there.
	objects.AddAttached(pod, d.mounts)
	// Not in the digest: it is brought up to date where the pod is.
	objects.PassOn(d.s.VM, &d.s.Settings.Allowed).AddTo(pod)
	if uid := d.s.VM.UID; uid != "" {
		pod.Annotations[names.AnnotationMadeFor] = string(uid)
	}
	pod.Annotations[names.AnnotationStarted] = started(d.vm, d.classNow)
	for _, key := range []string{names.AnnotationForceStop, names.AnnotationPowerRequest} {
		if request := d.s.VM.Annotations[key]; request != "" {
			pod.Annotations[key] = request
		}
	}
	pod.Annotations[names.AnnotationConfigVersion] = d.s.ConfigMap.ResourceVersion
	if d.certificate != "" {
		pod.Annotations[names.AnnotationCertificate] = d.certificate
	}
	if d.userData != "" {
		pod.Annotations[names.AnnotationUserData] = d.userData
	}
	if d.secret != nil {
		pod.Annotations[names.AnnotationDisplayVersion] = d.secret.ResourceVersion
	}
	return pod
}

func (d *decision) plainPod() *corev1.Pod {
	return objects.Pod(d.vm, d.s.Settings, d.podInput())
}

func (d *decision) podInput() objects.PodInput {
	in := objects.PodInput{Disks: d.disks, RunnerDataClaim: d.claims[0].name, VolumeModes: d.modes, Limited: d.limited(), TakeOver: d.takesOver(), DeviceGroups: d.stored.DeviceGroups, Certificate: d.certificate, UserData: d.userData}
	if d.secret != nil {
		in.DisplaySecret = d.secret.Name
	}
	in.ImageRepository = d.s.ImageRepository != nil && machineconfig.MayUseRepository(d.vm)
	return in
}
