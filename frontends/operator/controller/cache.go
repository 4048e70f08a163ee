package controller

import (
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheOptions returns what the caches watch and what they keep of it.
//
// Volume claims are watched without a selector: a machine's disk may be any claim of its namespace,
// and the machine has to notice when it appears or is bound. What is kept of each kind is defined
// by package reconcile, whose decisions depend on it.
func cacheOptions(namespaces, without []string, kinds []registration) cache.Options {
	// Cached objects are never modified, so they need not be copied, and may have parts in common.
	common := newSharing()
	o := cache.Options{
		DefaultUnsafeDisableDeepCopy: new(true),
		// A kind without a registered watch must not be watched by accident.
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   {Label: labels.SelectorFromSet(podLabels()), Transform: condensed(common.pod)},
			&corev1.ConfigMap{}:             {Label: labels.SelectorFromSet(objectLabels()), Transform: condensed(machinekind.CondenseConfigMap)},
			&corev1.Service{}:               {Label: labels.SelectorFromSet(objectLabels()), Transform: condensed(machinekind.CondenseService)},
			&corev1.Secret{}:                {Label: watchedSecrets(), Transform: condensed(machinekind.CondenseSecret)},
			&corev1.PersistentVolumeClaim{}: {Transform: condensed(common.claim)},
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
