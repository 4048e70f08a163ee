package observation

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Starts decides when the machines of one namespace may be given their pods, so
// that each of several that share a claim sees the pods of those before it. Its
// zero value is that of a namespace of which nothing is known. It has no lock.
//
// # Why at most one of them gets a pod
//
// A pod that uses a claim was made either by this operator, or by somebody else.
//
//   - While one machine is being started ([Starts.Begin] said Go, and
//     [Starts.End] did not follow), no other that has a claim in common with it
//     is. Whoever comes next therefore comes after the answer to the creation.
//   - From that answer on the pod is in [Starts.Made] until the caches show it;
//     after that they do, until it is gone. The driver reads Made first and the
//     caches afterwards, so that no pod can pass from the one to the other
//     unseen. This makes the sight of one's own pods exact, with no request.
//   - A creation whose outcome is unknown may have happened, or happen yet. Its
//     claims stay taken until no API server can still be at work on it
//     ([uncertain]), and all pods are looked at anew.
//   - Pods of others are looked for at the API server, in a look that began after
//     the machine had asked to be started, and when it had all its claims. A pod
//     that waits for a claim that is only just made is seen by that, too. Several
//     machines may use the same look: it is no older for the second of them than
//     one of its own would have been for the first.
//   - Pods that the caches watch are left out of a look, but for the first one of a
//     namespace, now and then, after a doubt, and for machines that refer to
//     claims by their names. So what a leader before made last, or another
//     operator makes, is not missed because a watch is late.
//
// What remains is a pod that somebody else makes between the look and the
// creation, as it does for everybody who looks before acting. Against that,
// Kubernetes has the access mode ReadWriteOncePod.
type Starts struct {
	// taken are the claims of machines that are being started.
	taken map[string]taken
	// looking: somebody looks at the API server.
	looking bool
	// last are the latest looks: at pods that nobody watches, and at all.
	last [2]*Look
	// made are pods that the caches may not show yet.
	made map[string]Made
	// known is when the latest look at all pods began of which everything that the
	// caches may lack is in made. Zero after a doubt.
	known time.Time
}

// taken says which machine a claim is taken by.
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
	// Refers: some of them were not made for the machine.
	Refers bool
	// Asked is when all of the claims were there and the pod was wanted first.
	Asked time.Time
}

// Pod is what matters of a pod to those that share claims with it.
type Pod struct {
	Name, UID string
	// Version is its resource version.
	Version string
	Claims  []string
	// Watched: the caches show it, sooner or later.
	Watched bool
	// Object is the pod itself, for whoever decides with it.
	Object *corev1.Pod
}

// Made is a pod that exists though the caches may not show it.
type Made struct {
	Pod
	// At is when it was made or seen.
	At time.Time
}

// Look is what was seen at the API server.
type Look struct {
	// Whole: all pods were looked at, not only those that no cache shows.
	Whole bool
	// Began is when it was asked for.
	Began time.Time
	// Pods are those that have not ended. Nobody changes them.
	Pods []Pod
}

// Turn is what a machine that wants to start does now.
type Turn int

const (
	// Wait: come again soon; another machine is at it.
	Wait Turn = iota
	// LookAround: look at the pods that nobody watches, give the result to
	// [Starts.Looked], and ask again.
	LookAround
	// LookAtAll is the same for all pods.
	LookAtAll
	// Go: start. [Starts.End] has to follow.
	Go
)

const (
	// lookAge is how old a look may be that a start relies on.
	lookAge = 2 * time.Second
	// knownAge is when all pods of a namespace are looked at again in which
	// machines start.
	knownAge = 5 * time.Minute
	// unseen is how long the caches may take to show a pod that was made. One that
	// they do not show then may be gone, which only a look at all tells.
	unseen = 5 * time.Second
	// uncertain is how long a request may still be executed whose answer did not
	// come: API servers end requests after a minute.
	uncertain = 65 * time.Second
)

// Begin says what a machine that wants to start does now. With Go it returns the
// look that the start relies on.
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
		return Go, l
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

// Looked ends what LookAround and LookAtAll asked for; nil says that it failed.
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
	// What was made before and is not there any more is gone.
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

// End says that the start of a machine has ended: with a pod, without one, or
// without an answer, when nobody knows.
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
		t.starting = false
		if !answered {
			t.until = now.Add(uncertain)
		}
		if s.taken[c] = t; t.over(now) {
			delete(s.taken, c)
		}
	}
}

// Doubt has all pods looked at anew: somebody else may have made some.
func (s *Starts) Doubt() { s.known, s.last = time.Time{}, [2]*Look{} }

func (s *Starts) add(m Made) {
	if s.made == nil {
		s.made = map[string]Made{}
	}
	s.made[m.UID] = m
}

// Made are the pods that the caches may not show. Whoever finds one of them there,
// or learns from a watch that it is or was there, says so to [Starts.Shown].
func (s *Starts) Made() []Made {
	out := make([]Made, 0, len(s.made))
	for _, m := range s.made {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Made) int { return cmp.Compare(a.UID, b.UID) })
	return out
}

// Shown says that the caches show a pod, or one that came after it, or that it is
// gone.
func (s *Starts) Shown(uid string) { delete(s.made, uid) }

// Idle reports whether nothing has to be remembered of the namespace.
func (s *Starts) Idle(now time.Time) bool {
	for c, t := range s.taken {
		if !t.over(now) {
			return false
		}
		delete(s.taken, c)
	}
	return !s.looking && (s.known.IsZero() || now.Sub(s.known) > knownAge) && !recent(now, s.last[0]) && !recent(now, s.last[1])
}

func recent(now time.Time, l *Look) bool { return l != nil && now.Sub(l.Began) <= lookAge }
