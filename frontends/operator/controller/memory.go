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
	// cacheLag is how long the caches may take to show what was written.
	cacheLag = 5 * time.Second
	// unfedLag is the same while they are not fed.
	unfedLag = 30 * time.Second
	// recheck is when to look again if no watch says that they do.
	recheck = time.Second
	// settle is how long a status may be held back while objects are made.
	settle = 2 * time.Second
	// maxRetry is the longest delay before something is tried again that failed.
	maxRetry = time.Minute
	// failureAge is how long a refusal is kept that was not tried again: the
	// plan does not want the write any more. It is more than the longest delay
	// between two attempts.
	failureAge = 15 * time.Minute
)

// object names an object of the namespace.
type object struct{ kind, name string }

// written is what the caches have to show.
type written struct {
	// uid and version are those of the answer to the write; without a version
	// the object of this uid has to be gone or going.
	uid     types.UID
	version string
	at      time.Time
}

// confirmedBy reports whether what a cache has is the object as it was written, or
// newer.
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

// subjectMemory is what is known of what requests are about, such as a machine, that
// the cluster does not tell. None of it is needed after a restart: it saves writes,
// and it explains refusals, which then are met anew.
type subjectMemory struct {
	// written are writes that the caches did not show yet.
	written map[object]written
	// doubts are objects that are to be read from the API server.
	doubts map[object]bool
	// failures are the refused writes.
	failures map[reconcile.Target]refusal
	// looked is when the observation was begun that is acted upon.
	looked time.Time
	// held is since when a status is held back.
	held time.Time
	// asked is since when it asks for its turn, as a machine does whose pod is wanted
	// and whose claims are there; turns counts how often it was not its turn since.
	asked time.Time
	turns int
	// stale counts the writes in a row that failed because the observation that
	// they were decided on was old.
	stale int
}

// wrote notes a write.
func (m *subjectMemory) wrote(o object, w written) {
	if m.written == nil {
		m.written = map[object]written{}
	}
	m.written[o] = w
}

// seen notes that a write is not waited for any more. Most machines wait for none, and
// a map that had something keeps its room.
func (m *subjectMemory) seen(o object) {
	if delete(m.written, o); len(m.written) == 0 {
		m.written = nil
	}
}

// doubt asks for a look at the object itself.
func (m *subjectMemory) doubt(o object) {
	if m.doubts == nil {
		m.doubts = map[object]bool{}
	}
	m.doubts[o] = true
}

// refusal is a write that was refused.
type refusal struct {
	reconcile.Failure
	// looked is when the observation was begun that led to it: what came later may
	// not have been there when the API server refused it.
	looked time.Time
}

// forbidden reports whether the API server said that it may not be.
func (r *refusal) forbidden() bool { return r.Reason == string(metav1.StatusReasonForbidden) }

// failed counts a refusal.
func (m *subjectMemory) failed(f reconcile.Failure) {
	if m.failures == nil {
		m.failures = map[reconcile.Target]refusal{}
	}
	f.Count = m.failures[f.Target].Count + 1
	m.failures[f.Target] = refusal{f, m.looked}
}

// memories are those of all subjects of an engine.
type memories struct {
	mu sync.Mutex
	of map[types.NamespacedName]*subjectMemory
	// forbidden are the subjects that were refused something which they may not, by
	// their namespaces.
	forbidden map[string]map[string]bool
}

// get returns the memory of a subject. controller-runtime never reconciles one
// twice at the same time, so that it needs no lock of its own.
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

// clear forgets all.
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

// looked notes, after a subject was looked at, whether it waits for a right.
func (m *memories) looked(key types.NamespacedName, memory *subjectMemory) {
	waits := false
	for _, r := range memory.failures {
		waits = waits || r.forbidden()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(key, waits)
}

// note is called with the lock held.
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

// waitingIn are the subjects of a namespace that wait for a right.
func (m *memories) waitingIn(namespace string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.forbidden[namespace]))
}
