package controller

import (
	"maps"

	"github.com/vmop/sdk/vmop/reconcile"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheOptions say what is watched and what is kept of it.
//
// Volume claims are watched without a selector: a machine's disk may be any
// claim of its namespace, and the machine has to notice when it appears or is
// bound. Of a claim less than a kilobyte is kept.
func cacheOptions(namespaces []string) cache.Options {
	// Nothing that is read is ever changed, so that nothing needs to be copied.
	shared := true
	o := cache.Options{
		DefaultTransform:             strip,
		DefaultUnsafeDisableDeepCopy: &shared,
		// What nobody has made a watch for must not be watched by accident.
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			newObject(machineKind):          {},
			newObject(poolKind):             {},
			&corev1.Pod{}:                   {Label: labels.SelectorFromSet(podLabels()), Transform: stripPod},
			&corev1.ConfigMap{}:             {Label: labels.SelectorFromSet(objectLabels())},
			&corev1.Service{}:               {Label: labels.SelectorFromSet(objectLabels()), Transform: stripService},
			&corev1.Secret{}:                {Label: labels.SelectorFromSet(secretLabels()), Transform: stripSecret},
			&corev1.PersistentVolumeClaim{}: {Transform: stripClaim},
		},
	}
	if len(namespaces) > 0 {
		o.DefaultNamespaces = map[string]cache.Config{}
		for _, n := range namespaces {
			o.DefaultNamespaces[n] = cache.Config{}
		}
	}
	return o
}

func objectLabels() labels.Set {
	return labels.Set{reconcile.LabelName: reconcile.AppName, reconcile.LabelManagedBy: reconcile.ManagedBy}
}

func podLabels() labels.Set {
	l := objectLabels()
	l[reconcile.LabelComponent] = reconcile.ComponentRunner
	return l
}

func secretLabels() labels.Set {
	return labels.Set{reconcile.LabelName: reconcile.AppName, reconcile.LabelComponent: reconcile.ComponentDisplaySecret}
}

const (
	appliedByKubectl = corev1.LastAppliedConfigAnnotation
	// bound by the volume controller; long and of no interest.
	selectedNode = "volume.kubernetes.io/selected-node"
)

// strip removes what is long and what nobody looks at.
func strip(o any) (any, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return o, nil // a tombstone of the watch
	}
	m.SetManagedFields(nil)
	if a := m.GetAnnotations(); a[appliedByKubectl] != "" || a[selectedNode] != "" {
		a = maps.Clone(a)
		delete(a, appliedByKubectl)
		delete(a, selectedNode)
		m.SetAnnotations(a)
	}
	return o, nil
}

// stripPod keeps what says where the pod is, how it is and which claims it uses.
func stripPod(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	var claims []corev1.Volume
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims = append(claims, v)
		}
	}
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: claims}
	s := &pod.Status
	pod.Status = corev1.PodStatus{
		Phase: s.Phase, Reason: s.Reason, Message: s.Message, PodIP: s.PodIP, StartTime: s.StartTime,
		Conditions: s.Conditions, ContainerStatuses: s.ContainerStatuses,
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		c.VolumeMounts, c.Resources, c.AllocatedResources = nil, nil, nil
	}
	return strip(pod)
}

func stripService(o any) (any, error) {
	s, ok := o.(*corev1.Service)
	if !ok {
		return o, nil
	}
	s.Spec = corev1.ServiceSpec{Type: s.Spec.Type, Selector: s.Spec.Selector, Ports: s.Spec.Ports}
	s.Status = corev1.ServiceStatus{}
	return strip(s)
}

// stripSecret keeps no secret: that there is one and its version is all that
// the operator needs to know.
func stripSecret(o any) (any, error) {
	s, ok := o.(*corev1.Secret)
	if !ok {
		return o, nil
	}
	s.Data, s.StringData = nil, nil
	return strip(s)
}

func stripClaim(o any) (any, error) {
	c, ok := o.(*corev1.PersistentVolumeClaim)
	if !ok {
		return o, nil
	}
	c.Spec = corev1.PersistentVolumeClaimSpec{
		Resources:  corev1.VolumeResourceRequirements{Requests: c.Spec.Resources.Requests},
		VolumeMode: c.Spec.VolumeMode, VolumeName: c.Spec.VolumeName,
	}
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: c.Status.Phase}
	if c.Labels[reconcile.LabelInstance] == "" {
		c.Annotations = nil // a claim of others, of which only the state matters
	}
	return strip(c)
}
