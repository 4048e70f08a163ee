package controller

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"pgregory.net/rapid"
)

func request(namespace string, n int) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}}
}

func newTestQueue(workers int) *fairQueue {
	return newFairQueue("", workers, workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Second, time.Minute))
}

// One with much to do does not keep the others waiting for more than a turn.
func TestNamespacesHaveTurns(t *testing.T) {
	q := newTestQueue(8)
	for i := range 500 {
		q.Add(request("busy", i))
	}
	for i := range 3 {
		q.Add(request("small", i))
	}
	var got []string
	for range 8 {
		item, _ := q.Get()
		got = append(got, item.Namespace)
		q.Done(item)
	}
	want := []string{"busy", "small", "busy", "small", "busy", "small", "busy", "busy"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// However slow a namespace is, half of the workers are for the others.
func TestNoNamespaceHasAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTestQueue(4)
		defer q.ShutDown()
		for i := range 10 {
			q.Add(request("slow", i))
		}
		serving := make(chan ctrl.Request, 10)
		for range 4 {
			go func() {
				for {
					item, end := q.Get()
					if end {
						return
					}
					serving <- item
					if item.Namespace == "slow" {
						time.Sleep(time.Minute)
					}
					q.Done(item)
				}
			}()
		}
		synctest.Wait()
		if len(serving) != 2 {
			t.Fatalf("%d of the slow namespace are served at once", len(serving))
		}
		q.Add(request("good", 0))
		synctest.Wait()
		if <-serving; (<-serving).Namespace != "slow" || (<-serving).Namespace != "good" {
			t.Error("the other namespace waits")
		}
		time.Sleep(5*time.Minute + time.Second)
		if len(serving) != 8 {
			t.Errorf("%d more after five minutes, want the other 8", len(serving))
		}
	})
}

func TestBegunGoFirstAndOldLast(t *testing.T) {
	q := newTestQueue(8)
	low, begun := lowPriority, begunPriority
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, request("a", 0), request("b", 1), request("a", 2))
	q.Add(request("a", 3))
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &begun}, request("a", 4))
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &begun}, request("a", 2)) // is raised
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, request("a", 4))   // stays
	var got []string
	for range 5 {
		item, _ := q.Get()
		got = append(got, item.Name)
		q.Done(item)
	}
	if want := []string{"4", "2", "3", "0", "1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What is added now is not added again later, and of two times the earlier counts.
func TestAddAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTestQueue(8)
		defer q.ShutDown()
		r := request("a", 0)
		q.AddAfter(r, time.Hour)
		q.AddAfter(r, time.Minute)
		q.AddAfter(r, 2*time.Minute)
		time.Sleep(time.Minute)
		synctest.Wait()
		if q.Len() != 1 {
			t.Fatal("it does not come after the earlier time")
		}
		item, _ := q.Get()
		q.Done(item)
		q.AddAfter(r, time.Minute)
		q.Add(r)
		item, _ = q.Get()
		q.Done(item)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if q.Len() != 0 {
			t.Error("it comes again")
		}
		q.AddRateLimited(r)
		q.AddRateLimited(r)
		if q.NumRequeues(r) != 2 {
			t.Error("failures are not counted")
		}
	})
}

// Whatever is added is served, once for each time that it was added after it had
// been taken, and never twice at the same time.
func TestNothingIsLostInTheQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newTestQueue(rapid.IntRange(1, 5).Draw(t, "workers"))
		owed, active := map[ctrl.Request]bool{}, []ctrl.Request{}
		names := []string{"a", "b", "c"}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				r := request(rapid.SampledFrom(names).Draw(t, "namespace"), rapid.IntRange(0, 3).Draw(t, "name"))
				p := rapid.SampledFrom([]int{lowPriority, 0, begunPriority}).Draw(t, "priority")
				q.AddWithOpts(priorityqueue.AddOpts{Priority: &p}, r)
				owed[r] = true
			},
			"get": func(t *rapid.T) {
				if q.Len() == 0 {
					t.Skip()
				}
				r, _ := q.Get()
				if !owed[r] || slices.Contains(active, r) {
					t.Fatalf("%v: owed %v, active %v", r, owed[r], active)
				}
				delete(owed, r)
				active = append(active, r)
			},
			"done": func(t *rapid.T) {
				if len(active) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(active)-1).Draw(t, "which")
				q.Done(active[i])
				active = slices.Delete(active, i, i+1)
			},
		})
		for len(active) > 0 {
			q.Done(active[0])
			active = active[1:]
		}
		for range len(owed) {
			if q.Len() == 0 {
				t.Fatalf("lost: %v", owed)
			}
			r, _ := q.Get()
			delete(owed, r)
			q.Done(r)
		}
		if len(owed) > 0 || q.Len() > 0 {
			t.Fatalf("owed %v, %d more", owed, q.Len())
		}
	})
}
