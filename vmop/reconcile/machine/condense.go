package machine

import (
	"slices"
	"unique"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The functions of this file make small copies of objects for caches, with all that [Decide]
// reads: with them in a [Snapshot] it decides the same. The copies share data with the object;
// condensing one again changes nothing.

// CondensePod keeps the pod's node, its state and the claims it uses.
func CondensePod(pod *corev1.Pod) *corev1.Pod {
	c := &corev1.Pod{ObjectMeta: condensedMeta(pod)}
	c.Generation = pod.Generation
	c.Labels = picked(pod.Labels,
		names.LabelName, names.LabelInstance, names.LabelManagedBy, names.LabelComponent, names.LabelDisk,
		names.LabelImage, names.LabelClusterImage, names.LabelImageServer, names.LabelAttachment,
	)
	c.Annotations = picked(pod.Annotations,
		names.AnnotationApplied, names.AnnotationStarted, names.AnnotationConfigVersion, names.AnnotationRefreshed,
		names.AnnotationDisplayVersion, names.AnnotationRequests, names.AnnotationDataOwner,
		names.AnnotationForceStop, names.AnnotationPowerRequest, names.AnnotationPassedOn, names.AnnotationMadeFor,
		names.AnnotationOrphaned, names.AnnotationAdopted, names.AnnotationCertificate, names.AnnotationUserData,
		names.AnnotationExportsTo, names.AnnotationAttached, names.AnnotationServesTo, names.AnnotationUploadRequest,
		names.AnnotationDownloadRequest,
	)
	c.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
	c.Spec.NodeName = pod.Spec.NodeName
	if n := len(objects.PodClaims(pod)); n > 0 {
		c.Spec.Volumes = make([]corev1.Volume, 0, n)
	}
	for i := range pod.Spec.Volumes {
		claim := pod.Spec.Volumes[i].PersistentVolumeClaim
		if claim == nil {
			continue
		}
		kept := corev1.Volume{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.ClaimName},
		}}
		if objects.OnlyCopies(pod, claim.ClaimName) {
			kept.Name = known(pod.Spec.Volumes[i].Name)
		}
		c.Spec.Volumes = append(c.Spec.Volumes, kept)
	}
	s := &pod.Status
	c.Status = corev1.PodStatus{Phase: corev1.PodPhase(known(string(s.Phase))), Reason: s.Reason, Message: s.Message, PodIP: s.PodIP, ObservedGeneration: s.ObservedGeneration}
	for i := range s.Conditions {
		switch p := &s.Conditions[i]; p.Type {
		case corev1.PodScheduled, corev1.PodReady, corev1.DisruptionTarget, corev1.PodResizePending:
			kept := corev1.PodCondition{
				Type: corev1.PodConditionType(known(string(p.Type))), Status: corev1.ConditionStatus(known(string(p.Status))),
				Reason: p.Reason, Message: p.Message,
			}
			if p.Type == corev1.PodScheduled && p.Status == corev1.ConditionTrue {
				kept.LastTransitionTime = p.LastTransitionTime
			}
			c.Status.Conditions = append(c.Status.Conditions, kept)
		}
	}
	for i := range s.ContainerStatuses {
		p := &s.ContainerStatuses[i]
		c.Status.ContainerStatuses = append(c.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: p.Name, State: p.State, LastTerminationState: p.LastTerminationState, Ready: p.Ready, RestartCount: p.RestartCount,
			Resources: given(p.Resources),
		})
	}
	// One that ended well is not reported.
	if p := hinderingInit(pod); p != nil {
		c.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: p.Name, State: p.State}}
	}
	if p := runnerContainer(pod, objects.MachineOf(pod)); p != nil && (!finished(pod) || outOfMemory(pod)) {
		// Most machines have the same image.
		c.Spec.Containers = []corev1.Container{{Name: known(p.Name), Image: unique.Make(p.Image).Value(), Resources: computed(p.Resources)}}
	}
	if ports := hostPorts(pod); len(ports) > 0 {
		if len(c.Spec.Containers) == 0 {
			c.Spec.Containers = make([]corev1.Container, 1)
		}
		for _, p := range ports {
			c.Spec.Containers[0].Ports = append(c.Spec.Containers[0].Ports, corev1.ContainerPort{Name: p.Name, HostPort: p.HostPort})
		}
	}
	return c
}

// outOfMemory reports whether a container of a pod was killed for lack of memory; its limit is
// reported then.
func outOfMemory(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		t := c.State.Terminated
		if t == nil {
			t = c.LastTerminationState.Terminated
		}
		return t != nil && t.Reason == reasonOOMKilled
	})
}

func given(r *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if r == nil {
		return nil
	}
	return &corev1.ResourceRequirements{Requests: computed(*r).Requests}
}

func computed(r corev1.ResourceRequirements) (out corev1.ResourceRequirements) {
	some := func(of corev1.ResourceList) (out corev1.ResourceList) {
		for _, name := range computedResources {
			if q, given := of[name]; given {
				if out == nil {
					out = make(corev1.ResourceList, 2)
				}
				out[name] = q
			}
		}
		return out
	}
	return corev1.ResourceRequirements{Requests: some(r.Requests), Limits: some(r.Limits)}
}

// CondenseConfigMap keeps a digest of the content. One that VM-Operator wrote stays whole: some of
// its content is stored nowhere else. Whether VM-Operator was the last to apply it is kept, too.
func CondenseConfigMap(cm *corev1.ConfigMap) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: condensedMeta(cm), Data: cm.Data}
	c.Labels, c.Annotations = kept(cm.Labels), kept(cm.Annotations)
	if cm.Labels[names.LabelComponent] == names.ComponentUserData {
		c.BinaryData = cm.BinaryData // empty, or the ConfigMap is not deleted
	}
	if formerApplied(cm) {
		c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: names.FieldManager, Operation: metav1.ManagedFieldsOperationApply}}
	}
	if _, err := resetCounter(cm); err == nil {
		// Mostly the annotation has the same digest: share the string.
		digest := content(cm.Data)
		if applied := cm.Annotations[names.AnnotationContent]; applied == digest {
			digest = applied
		}
		c.Data = map[string]string{condensedContent: digest}
	}
	return c
}

// CondenseService keeps what was applied.
func CondenseService(s *corev1.Service) *corev1.Service {
	c := &corev1.Service{ObjectMeta: condensedMeta(s)}
	c.Labels, c.Annotations = kept(s.Labels), kept(s.Annotations)
	c.Spec = corev1.ServiceSpec{Type: s.Spec.Type, Selector: s.Spec.Selector, Ports: s.Spec.Ports}
	return c
}

// CondenseSecret drops the secret data. It keeps the version and, if a password is all there is,
// the machine it was made for; of certificates that the operator has created, for displays,
// exporters, images and transfers, the certificate without its key; and user data of a manifest
// whole, as the manifest has it, too.
func CondenseSecret(s *corev1.Secret) *corev1.Secret {
	c := &corev1.Secret{ObjectMeta: condensedMeta(s)}
	c.Labels = picked(s.Labels, names.LabelName, names.LabelInstance, names.LabelComponent)
	switch {
	case s.Labels[names.LabelComponent] == names.ComponentDisplayCertificate:
		c.Data = objects.CondenseCertificate(s.Data)
	case s.Labels[names.LabelComponent] == names.ComponentAttachment:
		c.Data = objects.CondenseCertificate(s.Data)
		c.Labels[names.LabelAttachment] = s.Labels[names.LabelAttachment]
		c.Annotations = picked(s.Annotations, names.AnnotationMadeFor)
	case s.Labels[names.LabelComponent] == names.ComponentImageKey:
		c.Data = objects.CondenseCertificate(s.Data)
		c.Labels[names.LabelClusterImage] = s.Labels[names.LabelClusterImage]
		c.Annotations = picked(s.Annotations, names.AnnotationMadeFor)
	case s.Labels[names.LabelComponent] == names.ComponentTransfer:
		c.Data = objects.CondenseCertificate(s.Data)
		for _, label := range []string{names.LabelDisk, names.LabelImage} {
			if name := s.Labels[label]; name != "" {
				c.Labels[label] = name
			}
		}
		c.Annotations = picked(s.Annotations, names.AnnotationMadeFor)
	case s.Labels[names.LabelComponent] == names.ComponentUserData:
		c.Immutable, c.Data = s.Immutable, objects.CondenseUserData(s.Data)
	case holdsPasswordOnly(s):
		c.Annotations = picked(s.Annotations, names.AnnotationMadeFor)
	}
	return c
}

// CondenseForeign keeps what identifies the owner of another owner's object.
func CondenseForeign(o metav1.Object) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{
		Name: o.GetName(), OwnerReferences: o.GetOwnerReferences(),
		Labels: picked(o.GetLabels(), names.LabelName, names.LabelInstance, names.LabelComponent, labelManagedBy),
	}
}

// labelManagedBy is Kubernetes' label for the program that manages an object.
const labelManagedBy = "app.kubernetes.io/managed-by"

// CondenseClaim keeps a claim's labels, requests and state.
func CondenseClaim(pvc *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: condensedMeta(pvc)}
	c.Labels, c.Annotations = kept(pvc.Labels), kept(pvc.Annotations)
	unbound := pvc.Status.Phase != corev1.ClaimBound
	if unbound {
		c.Spec.StorageClassName = pvc.Spec.StorageClassName
	}
	if unbound || pvc.Annotations[names.AnnotationFilled] != "" || pvc.Annotations[names.AnnotationRestoreOf] != "" { // needed to clone or to restore it
		for _, key := range names.AnnotationsProvisioner {
			if p := pvc.Annotations[key]; p != "" {
				if c.Annotations == nil {
					c.Annotations = map[string]string{}
				}
				c.Annotations[known(key)] = known(p)
			}
		}
	}
	c.Spec.VolumeMode = pvc.Spec.VolumeMode
	if pvc.Status.Phase == corev1.ClaimLost {
		c.Spec.VolumeName = pvc.Spec.VolumeName
	}
	if storage, ok := pvc.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: storage}
	}
	c.Status.Phase = corev1.PersistentVolumeClaimPhase(known(string(pvc.Status.Phase)))
	// The capacity is read for VirtualDisks only.
	if storage, ok := pvc.Status.Capacity[corev1.ResourceStorage]; ok && pvc.Labels[names.LabelDisk] != "" {
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: storage}
	}
	return c
}

func condensedMeta(o metav1.Object) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
	for _, r := range o.GetOwnerReferences() {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{
			APIVersion: known(r.APIVersion), Kind: known(r.Kind), Name: r.Name, UID: r.UID,
		})
	}
	return m
}

// kept drops the entries that no decision reads and interns the rest.
func kept(m map[string]string) map[string]string {
	m = reconcile.Readable(m)
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[known(k)] = known(v)
	}
	return out
}

func picked(m map[string]string, keys ...string) map[string]string {
	n := 0
	for _, k := range keys {
		if _, ok := m[k]; ok {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	out := make(map[string]string, n) // most objects have few of the keys
	for _, k := range keys {
		if v, ok := m[k]; ok {
			out[k] = known(v)
		}
	}
	return out
}

// known interns strings that many objects share.
func known(s string) string {
	switch s {
	case names.LabelName:
		return names.LabelName
	case names.LabelInstance:
		return names.LabelInstance
	case names.LabelManagedBy:
		return names.LabelManagedBy
	case names.LabelComponent:
		return names.LabelComponent
	case names.AppName:
		return names.AppName
	case names.ManagedBy:
		return names.ManagedBy
	case names.ComponentDisplaySecret:
		return names.ComponentDisplaySecret
	case names.ComponentDisplayCertificate:
		return names.ComponentDisplayCertificate
	case names.ComponentUserData:
		return names.ComponentUserData
	case names.AnnotationCertificate:
		return names.AnnotationCertificate
	case names.AnnotationVersion:
		return names.AnnotationVersion
	case names.AnnotationApplied:
		return names.AnnotationApplied
	case names.AnnotationContent:
		return names.AnnotationContent
	case names.AnnotationDocuments:
		return names.AnnotationDocuments
	case names.AnnotationResetRequest:
		return names.AnnotationResetRequest
	case names.AnnotationResetCounter:
		return names.AnnotationResetCounter
	case names.AnnotationGeneration:
		return names.AnnotationGeneration
	case names.AnnotationGranted:
		return names.AnnotationGranted
	case names.AnnotationInstanceID:
		return names.AnnotationInstanceID
	}
	return s
}

// CondenseCertificate keeps which keys of a certificate are not empty, without their values.
func CondenseCertificate(s *corev1.Secret) *corev1.Secret {
	c := &corev1.Secret{ObjectMeta: condensedMeta(s)}
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(s.Data[key]) > 0 {
			if c.Data == nil {
				c.Data = map[string][]byte{}
			}
			c.Data[key] = []byte{1}
		}
	}
	return c
}
