package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// look is an observation in progress of the subject of one request. After an error it does nothing.
type look struct {
	*reader
	ctx             context.Context
	namespace, name string
	// The namespace is that of all objects but cluster-scoped ones.
	memory *subjectMemory
	// behind: the caches do not yet show what was written after an earlier look.
	behind bool
	err    error
}

func (w *look) key(kind, name string) types.NamespacedName {
	if w.kinds[kind].cluster {
		return types.NamespacedName{Name: name}
	}
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

// subject reads the object of the look into an empty one, or from the API server. It returns the
// zero value if the object does not exist, or if the caches do not yet show earlier writes.
func subject[T cached](w *look, kind string, into T) T {
	var none T
	found, err := get(w.ctx, w.cache, w.key(kind, w.name), into)
	if w.err = err; !found {
		return none
	}
	if w.awaits() {
		// Nothing is decoded or decided before the caches show earlier writes.
		w.behind = true
		return none
	}
	seen, _ := w.believed(object{kind, w.name}, into, w.kinds[kind].object).(T)
	return seen
}

// keptSubject reads the subject of a look and decodes it. Of one that cannot be decoded it returns
// the metadata and the reason, because it must remain possible to delete it.
func keptSubject[T any](w *look, kind string) (stored *kept[T], object *T, unreadable string) {
	stored = subject(w, kind, &kept[T]{})
	if stored == nil || w.err != nil {
		return nil, nil, ""
	}
	object, err := stored.decode()
	if err != nil {
		unreadable = err.Error()
		if object, w.err = metadataOf[T](&stored.stored); w.err != nil {
			return nil, nil, ""
		}
	}
	return stored, object, unreadable
}

type cached interface {
	comparable
	client.Object
}

// awaits reports whether the caches lack something that was just written, and forgets the writes
// that they show.
func (w *look) awaits() bool {
	for name, wrote := range w.memory.written {
		kind, kept := w.kinds[name.kind]
		if !kept || !w.mayCome(wrote.at) {
			continue
		}
		into := kind.object()
		found, err := get(w.ctx, w.cache, w.key(name.kind, name.name), into)
		if err != nil {
			w.err = err
			return true
		}
		if !found {
			into = nil
		}
		if !wrote.confirmedBy(into) {
			return true
		}
		w.memory.seen(name)
	}
	return false
}

// mayCome reports whether the caches may still come to show what was written at a time. While the
// watches are interrupted, as during and after an outage, reading each object from the API server
// instead would only add to its load.
func (w *look) mayCome(at time.Time) bool {
	now := w.now()
	if since := w.steady(); since.IsZero() || now.Sub(since) < cacheLag {
		return now.Sub(at) < unfedLag
	}
	return now.Sub(at) < cacheLag
}

// believed returns an object as the cache has it (nil for none), or as read from the API server
// into fresh() if the cache is not to be trusted.
func (w *look) believed(name object, cached client.Object, fresh func() client.Object) client.Object {
	if wrote, ok := w.memory.written[name]; ok {
		switch {
		case wrote.confirmedBy(cached):
			w.memory.seen(name)
		case w.mayCome(wrote.at):
			w.behind = true
			return cached
		default:
			// It may have been deleted before the cache showed it.
			w.memory.seen(name)
			w.memory.doubt(name)
		}
	}
	if !w.memory.doubts[name] {
		return cached
	}
	if cached != nil && !w.kinds[name.kind].ours {
		delete(w.memory.doubts, name)
		return cached
	}
	live := fresh()
	found, err := get(w.ctx, w.live, w.key(name.kind, name.name), live)
	switch {
	case err != nil:
		w.err = err
		return nil
	case !found:
		delete(w.memory.doubts, name)
		return nil
	case w.kinds[name.kind].ours:
		delete(w.memory.doubts, name)
	}
	// An object without our labels stays in doubt: no cache will show it.
	return live
}

func one[T cached](w *look, kind, name string, into T) T {
	var none T
	if w.err != nil {
		return none
	}
	found, err := get(w.ctx, w.cache, w.key(kind, name), into)
	if err != nil {
		w.err = err
		return none
	}
	var cached client.Object
	if found {
		cached = into
	}
	fresh := w.kinds[kind].object
	if seen, ok := w.believed(object{kind, name}, cached, fresh).(T); ok {
		return seen
	}
	return none
}

func (w *look) list(into client.ObjectList, index, value string) {
	if w.err != nil {
		return
	}
	w.err = list(w.ctx, w.cache, into, index, w.namespace, value)
}

// refusals returns the refused writes in a stable order. A write that was forbidden before the
// namespace got the objects that machines need may be accepted now.
func (w *look) refusals(now time.Time) []reconcile.Failure {
	var out []reconcile.Failure
	prepared := w.prepared.since(w.namespace)
	for _, f := range w.memory.failures {
		if now.Sub(f.Last) > failureAge || f.forbidden() && f.looked.Before(prepared) {
			delete(w.memory.failures, f.Target)
			continue
		}
		out = append(out, f.Failure)
	}
	slices.SortFunc(out, func(a, b reconcile.Failure) int { return cmp.Compare(a.Target.String(), b.Target.String()) })
	return out
}
