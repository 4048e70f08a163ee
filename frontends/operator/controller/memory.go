package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// cacheLag is how long the caches may take to show a write.
	cacheLag = 5 * time.Second
	// unfedLag is the same while the watches are interrupted.
	unfedLag = 30 * time.Second
	// recheck is when to look again if no watch wakes the subject.
	recheck = time.Second
	// settle is how long a status may be held back while objects are created, or the subject is
	// between two phases.
	settle   = 2 * time.Second
	maxRetry = time.Minute
	// failureAge is how long a refusal is kept that was not retried, because the plan no longer
	// wants the write. It must exceed the longest delay between two attempts.
	failureAge = 15 * time.Minute
)

// object names an object of the namespace.
type object struct{ kind, name string }

// written is a write that the caches have yet to show.
type written struct {
	// uid and version are those of the answer to the write; without a version, the object of this
	// uid has to be deleted or being deleted.
	uid     types.UID
	version string
	at      time.Time
}

// confirmedBy reports whether the cached object is as written, or newer.
func (w *written) confirmedBy(o client.Object) bool {
	switch {
	case w.version == "":
		return o == nil || o.GetUID() != w.uid || o.GetDeletionTimestamp() != nil
	case o == nil:
		return false
	case o.GetUID() != w.uid:
		return true
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), w.version)
	return err != nil || order >= 0
}

// subjectMemory is what is known of a subject beside the cluster. None of it is needed after a
// restart: it saves writes and explains refusals, which then occur again.
type subjectMemory struct {
	written map[object]written
	// doubts are objects to be read from the API server.
	doubts   map[object]bool
	failures map[reconcile.Target]refusal
	// looked is when the observation began that is acted on.
	looked time.Time
	// held is since when a status is held back.
	held time.Time
	// asked is since when a machine has waited for its turn: its pod is wanted and its claims
	// exist; turns counts how often it was not its turn since.
	asked time.Time
	turns int
	stale int
}

func (m *subjectMemory) wrote(o object, w written) {
	if m.written == nil {
		m.written = map[object]written{}
	}
	m.written[o] = w
}

// seen records that a write is no longer waited for. The map is dropped when empty, since most
// machines wait for none and a map keeps its size.
func (m *subjectMemory) seen(o object) {
	if delete(m.written, o); len(m.written) == 0 {
		m.written = nil
	}
}

func (m *subjectMemory) doubt(o object) {
	if m.doubts == nil {
		m.doubts = map[object]bool{}
	}
	m.doubts[o] = true
}

type refusal struct {
	reconcile.Failure
	// looked is when the observation began that led to it: objects created later may have been
	// missing when the API server refused.
	looked time.Time
}

func (r *refusal) forbidden() bool { return r.Reason == string(metav1.StatusReasonForbidden) }

func (m *subjectMemory) failed(f reconcile.Failure) {
	if m.failures == nil {
		m.failures = map[reconcile.Target]refusal{}
	}
	f.Count = m.failures[f.Target].Count + 1
	m.failures[f.Target] = refusal{f, m.looked}
}

type memories struct {
	mu sync.Mutex
	of map[types.NamespacedName]*subjectMemory
	// forbidden are the subjects, by namespace, with a write that the API server forbade.
	forbidden map[string]map[string]bool
}

// get returns the memory of a subject. It needs no lock of its own: controller-runtime never
// reconciles a subject concurrently.
func (m *memories) get(key types.NamespacedName) *subjectMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName]*subjectMemory{}
	}
	if m.of[key] == nil {
		m.of[key] = &subjectMemory{}
	}
	return m.of[key]
}

func (m *memories) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of, m.forbidden = nil, nil
}

func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, key)
	m.note(key, false)
}

// looked records, after a reconciliation, whether the subject waits for a right.
func (m *memories) looked(key types.NamespacedName, memory *subjectMemory) {
	waits := false
	for _, r := range memory.failures {
		waits = waits || r.forbidden()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(key, waits)
}

// note must be called with the lock held.
func (m *memories) note(key types.NamespacedName, waits bool) {
	in := m.forbidden[key.Namespace]
	switch {
	case waits && in == nil:
		if m.forbidden == nil {
			m.forbidden = map[string]map[string]bool{}
		}
		m.forbidden[key.Namespace] = map[string]bool{key.Name: true}
	case waits:
		in[key.Name] = true
	case in[key.Name]:
		if delete(in, key.Name); len(in) == 0 {
			delete(m.forbidden, key.Namespace)
		}
	}
}

// waitingIn returns the subjects of a namespace that wait for a right.
func (m *memories) waitingIn(namespace string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.forbidden[namespace]))
}
