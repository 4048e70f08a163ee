package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/vmop/sdk/vmop/reconcile"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slowAPI needs a second to create an object.
type slowAPI struct {
	client.Client
	// errs are what it answers to the creation of objects, by their names.
	errs map[string]error

	mu      sync.Mutex
	created []string
}

func (a *slowAPI) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	time.Sleep(time.Second)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.errs[o.GetName()]; err != nil {
		return err
	}
	a.created = append(a.created, o.GetName())
	o.SetUID(types.UID(o.GetName()))
	o.SetResourceVersion("1")
	return nil
}

// creating is an engine of a kind that creates claims and then a pod.
func creating(t *testing.T, api client.Client) *engine[struct{}] {
	t.Helper()
	writes, err := newWriteCounter(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	plan := reconcile.Plan{}
	for _, name := range []string{"a", "b", "c"} {
		plan.Actions = append(plan.Actions, reconcile.Create{Object: &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{Kind: kindClaim}, ObjectMeta: metav1.ObjectMeta{Name: name}}})
	}
	plan.Actions = append(plan.Actions, reconcile.Create{Object: &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: kindPod}, ObjectMeta: metav1.ObjectMeta{Name: "pod"}}})
	return &engine[struct{}]{
		kind:     kind[struct{}]{decide: func(struct{}) reconcile.Plan { return plan }},
		reader:   &reader{now: time.Now},
		executor: &executor{client: api, writes: writes, now: time.Now, leads: func() bool { return true }},
	}
}

// The claims are created at once, and then the pod. All are remembered until the caches show them.
func TestABatchIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, memory, began := &slowAPI{}, &subjectMemory{}, time.Now()
		_, failed, err := creating(t, api).carryOut(t.Context(), "lab", &sight[struct{}]{}, memory)
		if err != nil || len(failed) > 0 {
			t.Fatal(failed, err)
		}
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("it took %v", d)
		}
		if last := api.created[len(api.created)-1]; len(api.created) != 4 || last != "pod" {
			t.Errorf("created %v", api.created)
		}
		for _, o := range []object{{kindClaim, "a"}, {kindClaim, "b"}, {kindClaim, "c"}, {kindPod, "pod"}} {
			if w := memory.written[o]; w.version != "1" || w.uid != types.UID(o.name) {
				t.Errorf("%v: %+v is remembered", o, w)
			}
		}
	})
}

// What fails prevents nothing of its batch, and all that follows. Each refusal is remembered, and
// what is not known to be refused is tried again first.
func TestABatchFails(t *testing.T) {
	resource := schema.GroupResource{Resource: "persistentvolumeclaims"}
	forbidden, exists := apierrors.NewForbidden(resource, "", errors.New("exceeded quota")), apierrors.NewAlreadyExists(resource, "")
	for name, c := range map[string]struct {
		errs    map[string]error
		refused []string
		after   time.Duration
		unclear error
	}{
		"refused":           {map[string]error{"a": forbidden, "c": forbidden}, []string{"a", "c"}, time.Millisecond, nil},
		"refused and stale": {map[string]error{"a": forbidden, "b": exists}, []string{"a"}, 50 * time.Millisecond, nil},
		"unclear":           {map[string]error{"a": exists, "b": context.DeadlineExceeded, "c": forbidden}, []string{"c"}, 0, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, memory := &slowAPI{errs: c.errs}, &subjectMemory{}
				e := creating(t, api)
				_, failed, err := e.carryOut(t.Context(), "lab", &sight[struct{}]{}, memory)
				if err != nil || len(failed) != len(c.errs) || len(api.created) != 3-len(c.errs) || slices.Contains(api.created, "pod") {
					t.Errorf("%v, %v failed, %v was created", err, failed, api.created)
				}
				result, err := e.failed(t.Context(), failed, memory)
				if !errors.Is(err, c.unclear) || result.RequeueAfter != c.after {
					t.Errorf("%v, %v", result, err)
				}
				var refused []string
				for target := range memory.failures {
					refused = append(refused, target.Name)
				}
				if slices.Sort(refused); !slices.Equal(refused, c.refused) {
					t.Errorf("%v are remembered as refused", refused)
				}
				if memory.doubts[object{kindClaim, "a"}] != errors.Is(c.errs["a"], exists) {
					t.Errorf("%v are doubted", memory.doubts)
				}
			})
		})
	}
}
