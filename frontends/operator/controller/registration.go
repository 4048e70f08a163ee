package controller

import (
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

type registration struct {
	kind, resource string
	object         func() client.Object
	list           func() client.ObjectList
	add            func(*setup) error
}

func keptRegistration[T any](kind, resource string, add func(*setup) error) registration {
	return registration{
		kind: kind, resource: resource, add: add,
		object: func() client.Object { return &kept[T]{} },
		list:   func() client.ObjectList { return &keptList[T]{} },
	}
}

// stockKinds are the cached kinds of other API groups, as in [reconcile.Target].
func stockKinds() map[string]func() client.Object {
	return map[string]func() client.Object{
		kindPod:       func() client.Object { return &corev1.Pod{} },
		kindClaim:     func() client.Object { return &corev1.PersistentVolumeClaim{} },
		kindConfigMap: func() client.Object { return &corev1.ConfigMap{} },
		kindSecret:    func() client.Object { return &corev1.Secret{} },
		kindService:   func() client.Object { return &corev1.Service{} },
	}
}

func kindsOf(kinds []registration) map[string]cachedKind {
	out := map[string]cachedKind{}
	for name, object := range stockKinds() {
		out[name] = cachedKind{object: object}
	}
	for _, r := range kinds {
		out[r.kind] = cachedKind{object: r.object, ours: true, cluster: spec.ClusterScoped(r.kind)}
	}
	return out
}

type setup struct {
	manager manager.Manager
	options Options
	gate    *gate
	reader  *reader
	writes  *writeCounter
	// starts lets pods that have claims start, one at a time.
	starts *starts
	// forget is called at the beginning of each term to drop what another leader may have made
	// untrue.
	forget []func()
}
