package observation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Starts decides when the machines of one namespace may get their pods, so that each of several
// that share a claim sees the pods of those before it. The zero value is for a namespace of which
// nothing is known. It is not safe for concurrent use.
//
// # Why at most one of them gets a pod
//
// A pod that uses a claim was created either by this operator or by another client.
//
//   - While one machine is being started ([Starts.Begin] said Go, and
//     [Starts.End] did not follow), no other that has a claim in common with it
//     is. The next one therefore starts after the answer to the creation.
//   - From that answer on the pod is in [Starts.Made] until the caches show it;
//     after that they do, until it is deleted. The driver reads Made first and the
//     caches afterwards, so that no pod can pass from the one to the other
//     unseen. So the operator's own pods are always known, without a request.
//   - A creation whose outcome is unknown may have happened, or happen yet. Its
//     claims stay taken until no API server can still be at work on it
//     ([uncertain]), and all pods are listed anew.
//   - Pods of others are listed at the API server, in a look that began after
//     the machine had asked to be started, and when it had all its claims. Several
//     machines may use the same look: it is no older for the second of them than
//     one of its own would have been for the first.
//   - No look is needed for claims that this operator has only just created: a pod
//     of others that uses one of them waited for it, and whatever waits is watched
//     ([Starts.Awaits]). A claim is not new ([Starts.Created]) once a pod of others
//     was seen that names it, and when the watch began after it or was interrupted.
//   - Pods that the caches watch are left out of a look, but for the first one of a
//     namespace, now and then, after a doubt, and for machines that refer to
//     claims by their names. So what a leader before made last, or another
//     operator creates, is not missed because a watch is late.
//
// What remains is a pod that another client creates between the look and the creation, or, with new
// claims, one that the watch has not shown yet. Against that, Kubernetes has the access mode
// ReadWriteOncePod.
type Starts struct {
	// taken are the claims of machines that are being started.
	taken map[string]taken
	// looking: a look is in progress.
	looking bool
	// last are the latest looks: at pods that are not watched, and at all.
	last [2]*Look
	// made are pods that the caches may not show yet.
	made map[string]Made
	// known is when the latest look at all pods began after which everything that the caches may
	// lack is in made. Zero after a doubt.
	known time.Time
	// created is when this operator created claims that no pod of others is known to name.
	created map[string]time.Time
	// awaited are the claims of the pods of others that wait, by UID, and left is when a pod that
	// had waited for a claim did so no more.
	awaited map[string][]string
	left    map[string]time.Time
}

type taken struct {
	machine string
	// starting: until the end of the start.
	starting bool
	// until is when a creation without an answer is certainly over.
	until time.Time
}

func (t taken) over(now time.Time) bool { return !t.starting && !now.Before(t.until) }

// Start is a request to give a machine its pod.
type Start struct {
	Machine string
	// Claims are all that the machine uses or may come to use.
	Claims []string
	// Mounts are those that its pod uses.
	Mounts []string
	// Refers: some of them were not created for the machine.
	Refers bool
	// Asked is when all of the claims existed and the pod was first wanted.
	Asked time.Time
	// Watched is since when the pods of others that wait are watched without interruption; zero if
	// they are not.
	Watched time.Time
}

// Pod is what machines that share claims need to know of a pod.
type Pod struct {
	Name, UID string
	// Version is its resource version.
	Version string
	Claims  []string
	// Watched: the caches show it, sooner or later.
	Watched bool
	// Object is the pod itself, for decisions.
	Object *corev1.Pod
}

// Made is a pod that exists though the caches may not show it.
type Made struct {
	Pod
	// At is when it was created or seen.
	At time.Time
}

// Look is a result of reading pods from the API server.
type Look struct {
	// Whole: all pods were read, not only those that no cache shows.
	Whole bool
	// Began is when the request was sent.
	Began time.Time
	// Pods are those that have not ended. They are not modified.
	Pods []Pod
}

// Turn is what a machine that wants to start does now.
type Turn int

const (
	// Wait: ask again soon; another machine is being started.
	Wait Turn = iota
	// LookAround: read the pods that are not watched, pass the result to [Starts.Looked], and ask
	// again.
	LookAround
	// LookAtAll is LookAround for all pods.
	LookAtAll
	// Go: start. [Starts.End] has to follow.
	Go
)

const (
	// lookAge is how old a look may be that a start relies on.
	lookAge = 2 * time.Second
	// knownAge is how often all pods of a namespace in which machines start are read.
	knownAge = 5 * time.Minute
	// unseen is how long the caches may take to show a created pod. One that they do not show
	// then may have been deleted, which only a look at all pods shows.
	unseen = 5 * time.Second
	// uncertain is how long an unanswered request may still be executed: API servers end requests
	// after a minute.
	uncertain = 65 * time.Second
	// newFor is how long a created claim counts as new. Pods follow their claims at once, unless
	// something is in the way.
	newFor = time.Minute
)

// Begin returns what a machine that wants to start does now, and with Go the look that the start
// relies on.
func (s *Starts) Begin(now time.Time, w Start) (Turn, *Look) {
	for _, c := range w.Claims {
		if t, is := s.taken[c]; is && t.machine != w.Machine && !t.over(now) {
			return Wait, nil
		}
	}
	for _, m := range s.made {
		if now.Sub(m.At) > unseen {
			s.known = time.Time{}
		}
	}
	whole := w.Refers || s.known.IsZero() || now.Sub(s.known) > knownAge
	for i, l := range s.last {
		if l == nil || whole && i == 0 || l.Began.Before(w.Asked) || now.Sub(l.Began) > lookAge {
			continue
		}
		s.take(w)
		return Go, l
	}
	if !whole && s.allNew(now, w) {
		s.take(w)
		return Go, &Look{Began: now}
	}
	switch {
	case s.looking:
		return Wait, nil
	case whole:
		s.looking = true
		return LookAtAll, nil
	}
	s.looking = true
	return LookAround, nil
}

func (s *Starts) take(w Start) {
	if s.taken == nil {
		s.taken = map[string]taken{}
	}
	for _, c := range w.Claims {
		t := s.taken[c]
		if t.machine != w.Machine {
			t = taken{machine: w.Machine}
		}
		t.starting = true
		s.taken[c] = t
	}
}

func (s *Starts) allNew(now time.Time, w Start) bool {
	if w.Watched.IsZero() || len(w.Mounts) == 0 {
		return false
	}
	for _, c := range w.Mounts {
		if at, is := s.created[c]; !is || at.Before(w.Watched) || now.Sub(at) > newFor {
			return false
		}
	}
	return true
}

// Created records that the API server has created a claim for this operator, which had asked for it
// at the time. It is new unless a pod of others waits for it, or has waited since.
func (s *Starts) Created(claim string, asked time.Time) {
	if at, is := s.left[claim]; is && !at.Before(asked) {
		return
	}
	for _, claims := range s.awaited {
		if slices.Contains(claims, claim) {
			return
		}
	}
	if s.created == nil {
		s.created = map[string]time.Time{}
	}
	s.created[claim] = asked
}

// Awaits records that a pod of others, which runs as soon as it can, names claims.
func (s *Starts) Awaits(uid string, claims []string) {
	if len(claims) == 0 {
		return
	}
	if s.awaited == nil {
		s.awaited = map[string][]string{}
	}
	s.awaited[uid] = claims
	for _, c := range claims {
		delete(s.created, c)
	}
}

// AwaitsNoMore records that a pod of others runs, has ended or was deleted.
func (s *Starts) AwaitsNoMore(now time.Time, uid string) {
	for _, c := range s.awaited[uid] {
		if s.left == nil {
			s.left = map[string]time.Time{}
		}
		s.left[c] = now
	}
	delete(s.awaited, uid)
}

// Looked ends a look that was asked for; nil means that it failed.
func (s *Starts) Looked(l *Look) {
	s.looking = false
	switch {
	case l == nil:
		return
	case !l.Whole:
		s.last[0] = l
		return
	}
	s.last[1] = l
	// What was created before and is not in the look was deleted.
	for uid, m := range s.made {
		if m.At.Before(l.Began) {
			delete(s.made, uid)
		}
	}
	for _, p := range l.Pods {
		if p.Watched {
			s.add(Made{p, l.Began})
		}
	}
	s.known = l.Began
}

// End ends the start of a machine: with a pod, without one, or, if answered is false, with an
// unknown outcome.
func (s *Starts) End(now time.Time, machine string, pod *Pod, answered bool) {
	if pod != nil {
		s.add(Made{*pod, now})
	}
	if !answered {
		s.Doubt()
	}
	for c, t := range s.taken {
		if t.machine != machine {
			continue
		}
		if pod != nil {
			delete(s.created, c)
		}
		t.starting = false
		if !answered {
			t.until = now.Add(uncertain)
		}
		if s.taken[c] = t; t.over(now) {
			delete(s.taken, c)
		}
	}
}

// Doubt has all pods read anew, because another client may have created some.
func (s *Starts) Doubt() { s.known, s.last, s.created = time.Time{}, [2]*Look{}, nil }

func (s *Starts) add(m Made) {
	if s.made == nil {
		s.made = map[string]Made{}
	}
	s.made[m.UID] = m
}

// Made returns the pods that the caches may not show. Call [Starts.Shown] for one that is found
// there, or that a watch has shown.
func (s *Starts) Made() []Made {
	out := make([]Made, 0, len(s.made))
	for _, m := range s.made {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Made) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

// Shown records that the caches show a pod, or a later one, or that it was deleted.
func (s *Starts) Shown(uid string) { delete(s.made, uid) }

// Idle drops what cannot matter to a start any more, such as looks that are too old, and reports
// whether nothing has to be remembered of the namespace. Call it now and then also while no machine
// starts: pods of others and new claims are recorded without one.
func (s *Starts) Idle(now time.Time) bool {
	for i, l := range s.last {
		if !recent(now, l) {
			s.last[i] = nil
		}
	}
	maps.DeleteFunc(s.taken, func(_ string, t taken) bool { return t.over(now) })
	maps.DeleteFunc(s.created, func(_ string, at time.Time) bool { return now.Sub(at) > newFor })
	maps.DeleteFunc(s.left, func(_ string, at time.Time) bool { return now.Sub(at) > uncertain })
	return !s.looking && len(s.taken)+len(s.created)+len(s.left)+len(s.awaited) == 0 && (s.known.IsZero() || now.Sub(s.known) > knownAge) && s.last[0] == nil && s.last[1] == nil
}

func recent(now time.Time, l *Look) bool { return l != nil && now.Sub(l.Began) <= lookAge }
