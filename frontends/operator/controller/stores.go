package controller

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	objectnames "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stores answer from the caches' stores the frequent question whether an object is missing.
// controller-runtime allocates an object or an error for each query, which was more than a quarter
// of the allocations for creating a machine.
type stores struct {
	// items are the types of objects by those of their lists.
	items map[reflect.Type]reflect.Type

	mu sync.RWMutex
	of map[reflect.Type][]toolscache.SharedIndexInformer
}

// add records the informer of a type. Types that stand for several kinds are left out: an object
// missing from one may be in another.
func (s *stores) add(o runtime.Object, i toolscache.SharedIndexInformer) {
	switch o.(type) {
	case *metav1.PartialObjectMetadata, *unstructured.Unstructured:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := reflect.TypeOf(o)
	s.of[t] = append(s.of[t], i)
}

// filled returns the store of a type, or nil if there is not exactly one (several namespaces have
// one each) or it is not filled yet, which controller-runtime waits for.
func (s *stores) filled(t reflect.Type) toolscache.Indexer {
	s.mu.RLock()
	of := s.of[t]
	s.mu.RUnlock()
	if len(of) != 1 || !of[0].HasSynced() {
		return nil
	}
	return of[0].GetIndexer()
}

// lacks reports whether it is certain that there is no object of that type and name.
func (s *stores) lacks(t reflect.Type, key types.NamespacedName) bool {
	from := s.filled(t)
	if from == nil {
		return false
	}
	name := key.Name
	if key.Namespace != "" {
		name = key.String()
	}
	_, found, err := from.GetByKey(name)
	return err == nil && !found
}

// lacksIndexed reports whether it is certain that an index has nothing under a value in a
// namespace. The names are those of controller-runtime; other indexes are unknown here.
func (s *stores) lacksIndexed(list client.ObjectList, index, namespace, value string) bool {
	item := s.items[reflect.TypeOf(list)]
	if item == nil || namespace == "" {
		return false
	}
	from := s.filled(item)
	if from == nil {
		return false
	}
	keys, err := from.IndexKeys("field:"+index, namespace+"/"+value)
	return err == nil && len(keys) == 0
}

type storesReader struct {
	client.Reader
	stores *stores
}

// lacks reports whether it is certain that a reader would find nothing.
func lacks(from client.Reader, t reflect.Type, key types.NamespacedName) bool {
	r, ok := from.(*storesReader)
	return ok && r.stores.lacks(t, key)
}

// get reports whether the object exists; absence is not an error.
func get(ctx context.Context, from client.Reader, key types.NamespacedName, into client.Object) (bool, error) {
	if lacks(from, reflect.TypeOf(into), key) || !mayExist(key.Name) {
		return false, nil
	}
	err := from.Get(ctx, key, into)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	}
	return false, fmt.Errorf("read %T %s: %w", into, key, err)
}

// mayExist reports whether an object can have a name, which may be one from a manifest. client-go
// refuses others before it asks the API server: that is no reason to look again, and it is for the
// decision to say what is wrong with the manifest.
func mayExist(name string) bool {
	return name != "" && len(objectnames.IsPathSegmentName(name)) == 0
}

func list(ctx context.Context, from client.Reader, into client.ObjectList, index, namespace, value string) error {
	if r, ok := from.(*storesReader); ok && r.stores.lacksIndexed(into, index, namespace, value) {
		return nil
	}
	if err := from.List(ctx, into, client.InNamespace(namespace), client.MatchingFields{index: value}); err != nil {
		return fmt.Errorf("list %T by %s: %w", into, index, err)
	}
	return nil
}
