package machine

import (
	"slices"
	"strconv"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
)

func (d *decision) nextPod() string { return objects.PodName(d.vm.Name) }

func (d *decision) newPod() *corev1.Pod {
	pod := d.plainPod()
	reconcile.Stamp(pod)
	// Neither is in the digest: disks come and go during the pod's life.
	objects.AddAttached(pod, d.mounts)
	// Not in the digest: an existing pod is updated.
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
	in := objects.PodInput{Disks: d.disks, VolumeModes: d.modes, Limited: d.limited(), TakeOver: d.takesOver(), DeviceGroups: d.stored.DeviceGroups, Certificate: d.certificate, UserData: d.userData}
	if len(d.claims) > 0 { // not those of a machine that is invalid or unstartable
		in.RunnerDataClaim = d.runnerData().name
	}
	if d.secret != nil {
		in.DisplaySecret = d.secret.Name
	}
	in.ImageRepository = d.s.ImageRepository != nil && machineconfig.MayUseRepository(d.vm)
	return in
}

func (d *decision) computesRequests() bool {
	_, computed := objects.RecordedRequests(d.plainPod())
	return computed
}

// limited reports whether the pod has or must have limits: one was refused without them. An
// existing pod keeps what it was made with.
func (d *decision) limited() bool {
	if d.pod.exists() {
		r, _ := objects.RecordedRequests(d.pod.pod)
		return r.Limited
	}
	create := reconcile.Target{Verb: "create", Kind: names.KindPod, Name: d.nextPod()}
	return slices.ContainsFunc(d.s.Failures, func(f reconcile.Failure) bool { return f.Target == create && f.WantsLimits() })
}

// takesOver reports whether files of the machine may still belong to VM-Operator's runner, which
// was root, because no pod has given them to the runner's user.
//
// The ConfigMap remembers it. VM-Operator drops vmop's additions when it writes the ConfigMap, so
// files it writes after a way back are taken over once more.
func (d *decision) takesOver() bool {
	return d.s.Settings.TakeOverData && d.origin == machineconfig.OriginVMOperator && d.remembered().dataOwner != strconv.Itoa(objects.RunnerUser)
}
