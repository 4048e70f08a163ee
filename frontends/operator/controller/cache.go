package controller

import (
	"github.com/vmop/sdk/vmop/names"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheOptions say what is watched and what is kept of it.
//
// Volume claims are watched without a selector: a machine's disk may be any
// claim of its namespace, and the machine has to notice when it appears or is
// bound. What is kept of each kind is for reconcile to say, whose decisions are
// made of it; of a claim it is little but its labels and annotations.
func cacheOptions(namespaces, without []string, kinds []registration) cache.Options {
	// Nothing that is read is ever changed, so that nothing needs to be copied.
	o := cache.Options{
		DefaultUnsafeDisableDeepCopy: new(true),
		// What has no registered watch must not be watched by accident.
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   {Label: labels.SelectorFromSet(podLabels()), Transform: condensed(machinekind.CondensePod)},
			&corev1.ConfigMap{}:             {Label: labels.SelectorFromSet(objectLabels()), Transform: condensed(machinekind.CondenseConfigMap)},
			&corev1.Service{}:               {Label: labels.SelectorFromSet(objectLabels()), Transform: condensed(machinekind.CondenseService)},
			&corev1.Secret{}:                {Label: watchedSecrets(), Transform: condensed(machinekind.CondenseSecret)},
			&corev1.PersistentVolumeClaim{}: {Transform: condensed(machinekind.CondenseClaim)},
		},
	}
	for _, r := range kinds {
		o.ByObject[r.object()] = cache.ByObject{}
	}
	if len(without) > 0 {
		var others []fields.Selector
		for _, n := range without {
			others = append(others, fields.OneTermNotEqualSelector("metadata.namespace", n))
		}
		o.DefaultNamespaces = map[string]cache.Config{cache.AllNamespaces: {FieldSelector: fields.AndSelectors(others...)}}
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
	return labels.Set{names.LabelName: names.AppName, names.LabelManagedBy: names.ManagedBy}
}

// podLabels are those of the pods that are watched: one label only, so that a
// selector can say which pods are not, see [starts].
func podLabels() labels.Set {
	return labels.Set{names.LabelComponent: names.ComponentRunner}
}

func secretLabels() labels.Set {
	return labels.Set{names.LabelName: names.AppName, names.LabelComponent: names.ComponentDisplaySecret}
}

// watchedSecrets selects the display secrets, and the certificates, the user data and the
// keys of exporters, of images and of uploads that the operator has put into Secrets.
func watchedSecrets() labels.Selector {
	out := labels.SelectorFromSet(labels.Set{names.LabelName: names.AppName})
	// The values are labels, or else nothing could be selected by them.
	r, err := labels.NewRequirement(names.LabelComponent, selection.In, []string{
		names.ComponentDisplaySecret, names.ComponentDisplayCertificate, names.ComponentUserData,
		names.ComponentAttachment, names.ComponentImageKey, names.ComponentTransfer,
	})
	if err == nil {
		out = out.Add(*r)
	}
	return out
}

// condensed makes a transformation of what a cache keeps. What is not an object
// of the kind, such as a tombstone of a watch, stays as it is.
func condensed[T any](small func(T) T) func(any) (any, error) {
	return func(o any) (any, error) {
		if t, ok := o.(T); ok {
			return small(t), nil
		}
		return o, nil
	}
}
