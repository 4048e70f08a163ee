package controller

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// storedCaches are the operator's caches of what an API server has, before they are
// started.
func storedCaches(t *testing.T, api *fakeAPI) (cache.Cache, *storesReader) {
	t.Helper()
	kinds := registrations()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	addStored(scheme, kinds)
	from := newStores(kinds)
	options := cacheOptions(nil, nil, kinds)
	options.Scheme = scheme
	options.NewInformer = func(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		i := toolscache.NewSharedIndexInformer(lw, o, resync, indexers)
		from.add(o, i)
		return i
	}
	c, err := cache.New(&rest.Config{Host: api.URL}, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := addIndexes(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for o := range options.ByObject {
		if _, err := c.GetInformer(t.Context(), o, cache.BlockUntilSynced(false)); err != nil {
			t.Fatal(err)
		}
	}
	return c, &storesReader{c, from}
}

// What is said to be lacking is what the caches themselves have not: the names of their
// indexes are controller-runtime's, and nothing but this test notices other ones.
func TestNothingIsLackingThatThereIs(t *testing.T) {
	api := newFakeAPI(t, 2)
	api.objects[kindPod] = append(api.objects[kindPod], []byte(`{"apiVersion":"v1","kind":"Pod",
		"metadata":{"namespace":"apps","name":"backup","uid":"b","resourceVersion":"9","labels":{"app.kubernetes.io/instance":"machine-00000"}},
		"spec":{"containers":[],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"elsewhere"}}]}}`))
	c, r := storedCaches(t, api)
	pod := reflect.TypeFor[*corev1.Pod]()
	if r.stores.lacks(pod, types.NamespacedName{Namespace: "x", Name: "x"}) || r.stores.lacksIndexed(&corev1.PodList{}, byClaim, "x", "x") {
		t.Error("something is said to be lacking before the caches are filled")
	}
	go func() { _ = c.Start(t.Context()) }()
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the caches are not filled")
	}
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods); err != nil || len(pods.Items) == 0 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	p := &pods.Items[0]
	for name, want := range map[string]bool{p.Name: true, "missing": false} {
		key := types.NamespacedName{Namespace: p.Namespace, Name: name}
		if r.stores.lacks(pod, key) == want {
			t.Errorf("pod %s is said to be lacking: %v", key, want)
		}
		if found, err := get(t.Context(), r, key, &corev1.Pod{}); found != want || err != nil {
			t.Errorf("pod %s: found %v, %v", key, found, err)
		}
	}
	values := 0
	for _, i := range indexes() {
		lists := map[reflect.Type]client.ObjectList{}
		for of, item := range r.stores.items {
			lists[item] = reflect.New(of.Elem()).Interface().(client.ObjectList)
		}
		into := lists[reflect.TypeOf(i.object)]
		if into == nil {
			t.Fatalf("%T has an index and no list", i.object)
		}
		if !r.stores.lacksIndexed(into, i.name, p.Namespace, "missing") {
			t.Errorf("index %s of %T: what it has not is not said to be lacking", i.name, i.object)
		}
		for _, o := range r.stores.filled(reflect.TypeOf(i.object)).List() {
			of := o.(client.Object)
			for _, value := range i.values(of) {
				values++
				if of.GetNamespace() != "" && r.stores.lacksIndexed(into, i.name, of.GetNamespace(), value) {
					t.Errorf("index %s of %T: %s is said to be lacking", i.name, i.object, value)
				}
			}
		}
	}
	if values < 2 {
		t.Errorf("the indexes have %d values, want those of the pod backup", values)
	}
	// Of kinds that have one type in common none is asked for another.
	r.stores.add(&metav1.PartialObjectMetadata{}, r.stores.of[pod][0])
	if r.stores.lacks(reflect.TypeFor[*metav1.PartialObjectMetadata](), types.NamespacedName{Namespace: p.Namespace, Name: "missing"}) {
		t.Error("metadata of whatever kind are said to be lacking")
	}
	// Where there is one for each of several namespaces, controller-runtime is asked.
	r.stores.add(&corev1.Pod{}, r.stores.of[pod][0])
	if r.stores.lacks(pod, types.NamespacedName{Namespace: p.Namespace, Name: "missing"}) || r.stores.lacksIndexed(&corev1.PodList{}, byClaim, p.Namespace, "missing") {
		t.Error("something is said to be lacking in one of several caches")
	}
}
