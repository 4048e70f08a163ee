package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// The priorities of reconciliations. Between namespaces only lowPriority counts.
const (
	// lowPriority is controller-runtime's for objects that existed when the operator started: they
	// are reconciled when nothing else is to be done.
	lowPriority = handler.LowPriority
	// begunPriority is that of machines whose creation, start or stop has begun: they go before
	// others of their namespace, so that one is finished before many are begun.
	begunPriority = 10
)

// fairQueue is the queue of a controller. Namespaces take turns, one request each, regardless of
// how many each has; and none occupies more than half of the workers, so that others proceed where
// a namespace's writes are slow, for example because of an admission webhook.
type fairQueue struct {
	*workqueue.Typed[ctrl.Request]
	order   *turnOrder
	limiter workqueue.TypedRateLimiter[ctrl.Request]

	mu sync.Mutex
	// later are the requests with a delay. One that is added before is not added again then: its
	// reconciliation returns a new delay.
	later map[ctrl.Request]*later
}

type later struct {
	timer *time.Timer
	at    time.Time
}

var _ priorityqueue.PriorityQueue[ctrl.Request] = &fairQueue{}

func newFairQueue(name string, workers int, limiter workqueue.TypedRateLimiter[ctrl.Request]) *fairQueue {
	order := newTurnOrder(max(1, workers/2))
	return &fairQueue{
		Typed:   workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[ctrl.Request]{Name: name, Queue: order}),
		order:   order,
		limiter: limiter,
		later:   map[ctrl.Request]*later{},
	}
}

// Add implements [workqueue.TypedInterface].
func (q *fairQueue) Add(item ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, item) }

// AddAfter implements [workqueue.TypedDelayingInterface].
func (q *fairQueue) AddAfter(item ctrl.Request, d time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: d}, item)
}

// AddRateLimited implements [workqueue.TypedRateLimitingInterface].
func (q *fairQueue) AddRateLimited(item ctrl.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

// Forget implements [workqueue.TypedRateLimitingInterface].
func (q *fairQueue) Forget(item ctrl.Request) { q.limiter.Forget(item) }

// NumRequeues implements [workqueue.TypedRateLimitingInterface].
func (q *fairQueue) NumRequeues(item ctrl.Request) int { return q.limiter.NumRequeues(item) }

// AddWithOpts implements [priorityqueue.PriorityQueue].
func (q *fairQueue) AddWithOpts(o priorityqueue.AddOpts, items ...ctrl.Request) {
	priority := 0
	if o.Priority != nil {
		priority = *o.Priority
	}
	for _, item := range items {
		after := o.After
		if o.RateLimited {
			after = q.limiter.When(item)
		}
		q.order.raise(item, priority)
		if after <= 0 {
			q.addNow(item)
		} else {
			q.addLater(item, after)
		}
	}
}

func (q *fairQueue) addNow(item ctrl.Request) {
	q.mu.Lock()
	if l := q.later[item]; l != nil {
		l.timer.Stop()
		delete(q.later, item)
	}
	q.mu.Unlock()
	q.Typed.Add(item)
}

func (q *fairQueue) addLater(item ctrl.Request, after time.Duration) {
	at := time.Now().Add(after)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ShuttingDown() {
		return
	}
	if l := q.later[item]; l != nil {
		if !at.Before(l.at) {
			return
		}
		l.timer.Stop()
	}
	l := &later{at: at}
	l.timer = time.AfterFunc(after, func() {
		q.mu.Lock()
		current := q.later[item] == l
		if current {
			delete(q.later, item)
		}
		q.mu.Unlock()
		if current {
			q.Typed.Add(item)
		}
	})
	q.later[item] = l
}

// GetWithPriority implements [priorityqueue.PriorityQueue].
func (q *fairQueue) GetWithPriority() (item ctrl.Request, priority int, shutdown bool) {
	item, shutdown = q.Get()
	return item, 0, shutdown
}

// Done implements [workqueue.TypedInterface]. The calling worker returns for more work, so none has
// to be woken for what its namespace may do now.
func (q *fairQueue) Done(item ctrl.Request) {
	q.order.release(item.Namespace)
	q.Typed.Done(item)
}

// ShutDown implements [workqueue.TypedInterface]. Waiting requests are dropped: the next operator
// reconciles everything.
func (q *fairQueue) ShutDown() {
	q.order.close()
	q.mu.Lock()
	for item, l := range q.later {
		l.timer.Stop()
		delete(q.later, item)
	}
	q.mu.Unlock()
	q.Typed.ShutDown()
}

type turnOrder struct {
	mu sync.Mutex
	// share limits the concurrent requests of a namespace.
	share  int
	active map[string]int
	level  map[ctrl.Request]int
	// queued are those of them that wait.
	queued map[ctrl.Request]bool
	// rings has the usual requests first, then those of low priority.
	rings  [2]ring
	closed bool
}

// ring is the namespaces that have requests, in the order of their turns.
type ring struct {
	names []string
	lines map[string]*line
}

// line is a namespace's requests, begun ones first. A raised request is in both lists, and is
// skipped in the one where it is outdated.
type line struct{ begun, others []ctrl.Request }

func newTurnOrder(share int) *turnOrder {
	o := &turnOrder{share: share, active: map[string]int{}, level: map[ctrl.Request]int{}, queued: map[ctrl.Request]bool{}}
	for i := range o.rings {
		o.rings[i].lines = map[string]*line{}
	}
	return o
}

func (o *turnOrder) raise(item ctrl.Request, priority int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old, known := o.level[item]; known && old >= priority {
		return
	}
	o.level[item] = priority
	if o.queued[item] {
		o.put(item)
	}
}

func (o *turnOrder) put(item ctrl.Request) {
	r, level := &o.rings[0], o.level[item]
	if level <= lowPriority {
		r = &o.rings[1]
	}
	l := r.lines[item.Namespace]
	if l == nil {
		l = &line{}
		r.lines[item.Namespace] = l
		r.names = append(r.names, item.Namespace)
	}
	if level >= begunPriority {
		l.begun = append(l.begun, item)
	} else {
		l.others = append(l.others, item)
	}
}

// Touch implements [workqueue.Queue]: raise has already placed the request.
func (o *turnOrder) Touch(ctrl.Request) {}

// Push implements [workqueue.Queue].
func (o *turnOrder) Push(item ctrl.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued[item] = true
	if _, known := o.level[item]; !known {
		o.level[item] = 0
	}
	o.put(item)
}

// Len implements [workqueue.Queue]: the number of requests whose namespace may have another one
// served. It counts no further than one, which is all that callers need.
func (o *turnOrder) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.rings {
		if !o.closed && o.turn(i) >= 0 {
			return 1
		}
	}
	return 0
}

// turn returns the index in a ring of the namespace whose turn it is, or -1. Namespaces without
// requests leave the ring.
func (o *turnOrder) turn(i int) int {
	r := &o.rings[i]
	for at := 0; at < len(r.names); {
		name := r.names[at]
		l := r.lines[name]
		l.begun, l.others = o.current(l.begun, i, true), o.current(l.others, i, false)
		switch {
		case len(l.begun) == 0 && len(l.others) == 0:
			delete(r.lines, name)
			r.names = append(r.names[:at], r.names[at+1:]...)
		case o.active[name] < o.share:
			return at
		default:
			at++
		}
	}
	return -1
}

// current drops outdated requests at the beginning.
func (o *turnOrder) current(items []ctrl.Request, i int, begun bool) []ctrl.Request {
	for len(items) > 0 {
		level := o.level[items[0]]
		if o.queued[items[0]] && (level >= begunPriority) == begun && (level <= lowPriority) == (i == 1) {
			break
		}
		items = items[1:]
	}
	return items
}

// Pop implements [workqueue.Queue].
func (o *turnOrder) Pop() ctrl.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.rings {
		at := o.turn(i)
		if at < 0 {
			continue
		}
		r := &o.rings[i]
		name := r.names[at]
		l := r.lines[name]
		var item ctrl.Request
		if len(l.begun) > 0 {
			item, l.begun = l.begun[0], l.begun[1:]
		} else {
			item, l.others = l.others[0], l.others[1:]
		}
		// The namespace moves to the end of the ring.
		r.names = append(append(r.names[:at], r.names[at+1:]...), name)
		delete(o.queued, item)
		delete(o.level, item)
		o.active[name]++
		return item
	}
	return ctrl.Request{}
}

func (o *turnOrder) release(namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.active[namespace]--; o.active[namespace] <= 0 {
		delete(o.active, namespace)
	}
}

func (o *turnOrder) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}
