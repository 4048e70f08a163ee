package observation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// startsWorld is a namespace with an API server, a cache that lags behind it, an
// operator that has just begun to lead, and others who make pods. What happens is
// drawn; whether it may have happened is checked at each pod that is made.
type startsWorld struct {
	fault string // of the operator, for mutants

	now  time.Time
	pods map[string]*worldPod // those that there are
	log  []worldEvent         // of the watched ones
	seen int                  // how much of the log the cache has
	next int

	// watched is since when the pods of others that wait are watched; late is what that watch
	// has yet to show.
	watched time.Time
	late    []worldWait

	starts   Starts
	looks    map[*Look]bool // those that were asked for
	machines []*worldMachine
}

type worldPod struct {
	Pod
	since time.Time
	// waits: it is one of somebody else that does not run yet.
	waits bool
}

// worldWait is a pod of others that waits, or does so no more.
type worldWait struct {
	uid    string
	claims []string
	waits  bool
}

type worldEvent struct {
	pod  Pod
	gone bool
}

type worldMachine struct {
	name   string
	claims []string
	refers bool

	// exist: those of its claims that are its own are there.
	exist bool

	asked time.Time
	step  int // what the operator does for it, below
	// late is what the watch had yet to show when it began to start without a look.
	late  []worldWait
	began time.Time
	whole bool
	list  []Pod
	made  []Made
}

const (
	idle = iota
	claims
	lists
	reads
	creates
	answers
)

func newStartsWorld(fault string) *startsWorld {
	w := &startsWorld{fault: fault, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), pods: map[string]*worldPod{}, looks: map[*Look]bool{}}
	for i, claims := range [][]string{{"a", "shared"}, {"b", "shared"}, {"c"}, {"d", "c"}, {"e", "f"}, {"g"}} {
		w.machines = append(w.machines, &worldMachine{name: fmt.Sprint("vm", i), claims: claims, refers: i == 1 || i == 3, exist: i < 4})
	}
	w.watched = w.now
	// What the leader before made last, and the cache does not show yet.
	w.add(Pod{Name: "vm0", Claims: w.machines[0].claims, Watched: true})
	return w
}

func (w *startsWorld) add(p Pod) Pod {
	w.next++
	p.UID, p.Version = fmt.Sprint("uid", w.next), strconv.Itoa(w.next)
	w.pods[p.Name] = &worldPod{Pod: p, since: w.now, waits: !p.Watched}
	if p.Watched {
		w.log = append(w.log, worldEvent{pod: p})
	} else {
		w.late = append(w.late, worldWait{p.UID, p.Claims, true})
	}
	return p
}

// exists reports whether a claim does: those of machines that do not make theirs always do.
func (w *startsWorld) exists(claim string) bool {
	return !slices.ContainsFunc(w.machines, func(m *worldMachine) bool { return !m.exist && slices.Contains(m.claims, claim) })
}

// runs lets a pod of others run, if its claims exist.
func (w *startsWorld) runs(name string) {
	if p := w.pods[name]; p != nil && p.waits && !slices.ContainsFunc(p.Claims, func(c string) bool { return !w.exists(c) }) {
		p.waits = false
		w.late = append(w.late, worldWait{uid: p.UID})
	}
}

// show lets the watch of what waits show something.
func (w *startsWorld) show(n int) {
	for range min(n, len(w.late)) {
		if e := w.late[0]; !e.waits {
			w.starts.AwaitsNoMore(w.now, e.uid)
		} else if w.fault != "what waits is forgotten" {
			w.starts.Awaits(e.uid, e.claims)
		}
		w.late = w.late[1:]
	}
}

// interrupt loses what the watch of what waits has yet to show; what waits then is shown again.
func (w *startsWorld) interrupt() {
	w.late = nil
	for _, p := range w.pods {
		switch {
		case p.Watched:
		case p.waits:
			w.late = append(w.late, worldWait{p.UID, p.Claims, true})
		default:
			w.late = append(w.late, worldWait{uid: p.UID})
		}
	}
	if w.fault != "an interruption is forgotten" {
		w.watched = w.now
	}
}

func (w *startsWorld) remove(name string) {
	if p := w.pods[name]; p != nil {
		delete(w.pods, name)
		if p.Watched {
			w.log = append(w.log, worldEvent{p.Pod, true})
		} else if p.waits {
			w.late = append(w.late, worldWait{uid: p.UID})
		}
	}
}

func (w *startsWorld) cached() map[string]Pod {
	out := map[string]Pod{}
	for _, e := range w.log[:w.seen] {
		if e.gone {
			delete(out, e.pod.Name)
		} else {
			out[e.pod.Name] = e.pod
		}
	}
	return out
}

// prune is what a driver does before it asks.
func (w *startsWorld) prune() {
	cached := w.cached()
	for _, m := range w.starts.Made() {
		if c, is := cached[m.Name]; is && number(c.Version) >= number(m.Version) {
			w.starts.Shown(m.UID)
		}
	}
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

func share(a, b []string) bool {
	return slices.ContainsFunc(a, func(c string) bool { return slices.Contains(b, c) })
}

// act does one thing that a number chooses, and says what is wrong with it.
func (w *startsWorld) act(n int) string {
	w.now = w.now.Add(time.Duration(n%7) * 10 * time.Millisecond)
	switch kind, n := n%10, n/10; kind {
	case 0:
		for range min(len(w.log)-w.seen, 1+n%3) {
			w.starts.Shown(w.log[w.seen].pod.UID)
			w.seen++
		}
	case 1: // somebody else makes a pod
		name := fmt.Sprint("other", n%3)
		if w.pods[name] == nil {
			w.add(Pod{Name: name, Claims: w.machines[n%len(w.machines)].claims[:1]})
		} else {
			w.runs(name)
		}
	case 2: // a pod ends
		for i, name := range []string{"vm0", "vm1", "vm2", "vm3", "vm4", "vm5", "other0", "other1", "other2"} {
			if i == n%9 {
				w.remove(name)
			}
		}
	case 9:
		switch n %= 16; n {
		case 0:
			w.interrupt()
		case 1, 2: // somebody deletes claims that no pod uses
			m := w.machines[3+n]
			if m.step == idle && !slices.ContainsFunc(slices.Collect(maps.Values(w.pods)), func(p *worldPod) bool { return !p.waits && share(p.Claims, m.claims) }) {
				m.exist, m.asked = false, time.Time{}
			}
		default:
			w.show(n)
		}
	case 3:
		w.now = w.now.Add([]time.Duration{time.Second, 3 * time.Second, 6 * time.Second, 6 * time.Minute}[n%4])
	default:
		return w.work(w.machines[n%len(w.machines)], n/len(w.machines))
	}
	return ""
}

// work goes on with a machine's start.
func (w *startsWorld) work(m *worldMachine, n int) string {
	switch m.step {
	case idle:
		if w.pods[m.name] != nil && n%4 > 0 {
			return "" // the operator usually knows
		}
		if !m.exist {
			m.exist, m.step, m.began = true, claims, w.now
			return ""
		}
		if m.asked.IsZero() {
			m.asked = w.now
		}
		w.prune()
		start := Start{m.name, m.claims, m.claims, m.refers, m.asked, w.watched}
		if w.fault == "any look is good enough" {
			start.Asked = time.Time{}
		}
		turn, look := w.starts.Begin(w.now, start)
		switch turn {
		case Go:
			m.step, m.list, m.made, m.late = reads, look.Pods, w.starts.Made(), nil
			if !w.looks[look] {
				m.late = slices.Clone(w.late)
			}
			if w.fault == "a start is not alone" {
				w.starts.End(w.now, m.name, nil, true)
			}
		case LookAround, LookAtAll:
			m.step, m.began, m.whole = lists, w.now, turn == LookAtAll
		}
	case claims: // the answers have come
		m.step = idle
		if w.fault == "an answer is as old as it comes" {
			m.began = w.now
		}
		for _, c := range m.claims {
			w.starts.Created(c, m.began)
		}
	case lists:
		m.step = idle
		if n%8 == 0 {
			w.starts.Looked(nil)
			return ""
		}
		l := &Look{Whole: m.whole, Began: m.began}
		for _, p := range w.pods {
			if m.whole || !p.Watched {
				l.Pods = append(l.Pods, p.Pod)
			}
		}
		if w.fault == "the first look is like any other" && m.whole {
			l.Pods = slices.DeleteFunc(l.Pods, func(p Pod) bool { return p.Watched })
		}
		w.looks[l] = true
		w.starts.Looked(l)
	case reads:
		others := slices.Clone(m.list)
		for _, made := range m.made {
			if w.fault != "what was made is forgotten" {
				others = append(others, made.Pod)
			}
		}
		for _, p := range w.cached() {
			others = append(others, p)
		}
		if slices.ContainsFunc(others, func(p Pod) bool { return p.Name != m.name && share(p.Claims, m.claims) }) {
			m.step, m.asked = idle, time.Time{}
			w.starts.End(w.now, m.name, nil, true)
			return ""
		}
		m.step = creates
	case creates:
		if n%16 == 0 { // the answer is lost, and the pod comes later or not at all
			w.starts.End(w.now, m.name, nil, w.fault == "no answer is a no")
			m.step, m.began = answers, w.now
			return ""
		}
		problem := w.create(m, true)
		m.step, m.asked = idle, time.Time{}
		return problem
	case answers:
		m.step, m.asked = idle, time.Time{}
		if n%2 == 0 && w.now.Sub(m.began) < time.Minute { // when API servers give up
			return w.create(m, false)
		}
	}
	return ""
}

// create is what the API server does.
func (w *startsWorld) create(m *worldMachine, answered bool) (problem string) {
	var pod *Pod
	if w.pods[m.name] == nil {
		for _, p := range w.pods {
			if !share(p.Claims, m.claims) {
				continue
			}
			switch mine := p.Watched; {
			case mine:
				problem = fmt.Sprintf("%s gets a pod beside %s", m.name, p.Name)
			case slices.ContainsFunc(m.late, func(e worldWait) bool { return e.uid == p.UID && e.waits }):
				// The watch was late.
			case p.since.Before(m.asked):
				problem = fmt.Sprintf("%s gets a pod beside %s, which was there before", m.name, p.Name)
			}
		}
		made := w.add(Pod{Name: m.name, Claims: m.claims, Watched: true})
		pod = &made
	}
	if answered {
		w.starts.End(w.now, m.name, pod, true)
	}
	if w.fault == "a claim stays new" {
		for _, c := range m.claims {
			w.starts.Created(c, w.now)
		}
	}
	return problem
}

func (w *startsWorld) run(script []int) string {
	for i, n := range script {
		if problem := w.act(n); problem != "" {
			return fmt.Sprintf("step %d: %s", i, problem)
		}
	}
	return ""
}

var scripts = rapid.SliceOfN(rapid.IntRange(0, 99999), 20, 200)

// Of the machines that share a claim at most one has a pod, whatever the caches
// show, whoever else makes pods and whatever answers are lost; and no pod that
// was there when a start was asked for is overlooked, but for one that waits for claims
// that are only just made and that the watch of such pods is late to show.
func TestAtMostOnePodWritesToAClaim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if problem := newStartsWorld("").run(scripts.Draw(t, "script")); problem != "" {
			t.Fatal(problem)
		}
	})
}

// The property above notices what could be forgotten.
func TestStartsMutants(t *testing.T) {
	for _, fault := range []string{
		"a start is not alone", "what was made is forgotten", "any look is good enough", "the first look is like any other", "no answer is a no",
		"what waits is forgotten", "an interruption is forgotten", "a claim stays new", "an answer is as old as it comes",
	} {
		found := false
		for seed := 0; seed < 200000 && !found; seed++ {
			found = newStartsWorld(fault).run(scripts.Example(seed)) != ""
		}
		if !found {
			t.Errorf("nobody notices that %s", fault)
		}
	}
}

// Machines that come together are served by one look; and of pods that the caches
// show none is asked for but the first time.
func TestLooksAreShared(t *testing.T) {
	now := time.Now()
	var s Starts
	want := func(what string, start Start, turn Turn) *Look {
		t.Helper()
		got, look := s.Begin(now, start)
		if got != turn {
			t.Fatalf("%s: got %v, want %v", what, got, turn)
		}
		return look
	}
	a, b, c := Start{Machine: "a", Claims: []string{"a"}, Asked: now}, Start{Machine: "b", Claims: []string{"b"}, Asked: now}, Start{Machine: "c", Claims: []string{"a"}, Refers: true, Asked: now}
	want("the first of a namespace", a, LookAtAll)
	want("one that comes meanwhile", b, Wait)
	s.Looked(&Look{Whole: true, Began: now})
	want("the first", a, Go)
	want("the other one", b, Go)
	want("one that shares a claim", c, Wait)
	s.End(now, "a", &Pod{Name: "a", UID: "1", Claims: []string{"a"}, Watched: true}, true)
	want("one that shares a claim, after it", c, Go)
	if m := s.Made(); len(m) != 1 || m[0].UID != "1" {
		t.Errorf("made: %v", m)
	}
	s.End(now, "c", nil, true)
	s.End(now, "b", nil, true)

	now = now.Add(3 * time.Second)
	b.Asked, c.Asked = now, now
	want("one with claims of its own", b, LookAround)
	s.Looked(&Look{Began: now})
	want("one that refers to a claim", c, LookAtAll)
	want("one with claims of its own", b, Go)
	s.Looked(nil)
	s.End(now, "b", nil, true)

	if s.Idle(now) {
		t.Error("a namespace in which machines have just started is not idle")
	}
	if now = now.Add(knownAge + time.Second); !s.Idle(now) {
		t.Error("a namespace in which nothing starts is kept")
	}
}

// A look has all pods of a namespace, thousands where many machines start, and is not kept for
// longer than a start may rely on it, though the namespace is not idle.
func TestOldLooksAreDropped(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var s Starts
	for _, whole := range []bool{true, false} {
		s.Looked(&Look{Whole: whole, Began: now, Pods: []Pod{{Name: "other"}}})
	}
	if s.Idle(now.Add(lookAge)); s.last[0] == nil || s.last[1] == nil {
		t.Error("a look that starts may rely on is dropped")
	}
	if s.Idle(now.Add(lookAge + 1)); s.last[0] != nil || s.last[1] != nil {
		t.Errorf("looks are kept: %v", s.last)
	}
}

// What cannot matter any more is forgotten, also while the namespace has to be remembered for
// something else, which may be for ever.
func TestWhatIsOverIsForgotten(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, busy := range map[string]func(s *Starts, now time.Time){
		"for nothing else": func(*Starts, time.Time) {},
		"a start": func(s *Starts, now time.Time) {
			s.Looked(&Look{Whole: true, Began: now})
			s.Begin(now, Start{Machine: "vm", Claims: []string{"c"}})
		},
		"a new claim":                func(s *Starts, now time.Time) { s.Created("c", now) },
		"a pod that waits":           func(s *Starts, _ time.Time) { s.Awaits("waits", []string{"c"}) },
		"a pod that has just waited": func(s *Starts, now time.Time) { s.Awaits("waits", []string{"c"}); s.AwaitsNoMore(now, "waits") },
	} {
		t.Run(name, func(t *testing.T) {
			var s Starts
			for i := range 1000 {
				claim, uid := fmt.Sprint("claim", i), fmt.Sprint("uid", i)
				s.Created("new"+claim, began)
				s.Awaits(uid, []string{claim})
				s.AwaitsNoMore(began, uid)
			}
			if s.Idle(began.Add(uncertain)); len(s.left) != 1000 {
				t.Errorf("of what may matter yet there are %d", len(s.left))
			}
			now := began.Add(uncertain + 1)
			busy(&s, now)
			idle := s.Idle(now)
			if len(s.left)+len(s.created) > 1 {
				t.Errorf("kept are %d claims that were awaited and %d that were new", len(s.left), len(s.created))
			}
			if want := name == "for nothing else"; idle != want {
				t.Errorf("idle: %v", idle)
			}
		})
	}
}

// The claims of a machine that comes into being are known to be used by nobody, and
// no request asks for it.
func TestNewClaimsNeedNoLook(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	start := Start{Machine: "vm", Claims: []string{"root", "data", "root-before"}, Mounts: []string{"root", "data"}, Asked: at(11), Watched: began}
	with := func(change func(*Start)) Start {
		out := start
		change(&out)
		return out
	}
	for _, c := range []struct {
		name   string
		before func(*Starts)
		start  Start
		want   Turn
	}{
		{"all are new", func(*Starts) {}, start, Go},
		{"one is not", func(s *Starts) { delete(s.created, "data") }, start, LookAround},
		{"some are of others", func(*Starts) {}, with(func(w *Start) { w.Refers = true }), LookAtAll},
		{"its pod is not known", func(*Starts) {}, with(func(w *Start) { w.Mounts = nil }), LookAround},
		{"nothing that waits is watched", func(*Starts) {}, with(func(w *Start) { w.Watched = time.Time{} }), LookAround},
		{"the watch began later", func(*Starts) {}, with(func(w *Start) { w.Watched = at(11) }), LookAround},
		{"a pod waited for one before", func(s *Starts) { s.Awaits("1", []string{"data"}); s.Created("data", at(10)) }, start, LookAround},
		{"a pod waits for one", func(s *Starts) { s.Awaits("1", []string{"data"}) }, start, LookAround},
		{"a pod waited for one, and runs", func(s *Starts) { s.Awaits("1", []string{"data"}); s.AwaitsNoMore(at(11), "1") }, start, LookAround},
		{"a pod that waited has ended before", func(s *Starts) {
			s.Awaits("1", []string{"data"})
			s.AwaitsNoMore(at(9), "1")
			s.Created("data", at(10))
		}, start, Go},
		{"a pod that waited runs before the answer", func(s *Starts) {
			s.Awaits("1", []string{"data"})
			s.AwaitsNoMore(at(11), "1")
			s.Created("data", at(10))
		}, start, LookAround},
		{"another leader may have made pods", func(s *Starts) { s.Doubt() }, start, LookAtAll},
		{"the machine had a pod", func(s *Starts) {
			s.Begin(at(11), start)
			s.End(at(11), "vm", &Pod{UID: "1", Claims: start.Claims}, true)
			s.Shown("1")
		}, start, LookAround},
		{"the pod was refused", func(s *Starts) { s.Begin(at(11), start); s.End(at(11), "vm", nil, true) }, start, Go},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Starts
			s.Looked(&Look{Whole: true, Began: began})
			s.Created("root", at(10))
			s.Created("data", at(10))
			c.before(&s)
			if got, _ := s.Begin(at(12), c.start); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	var s Starts
	s.Looked(&Look{Whole: true, Began: began})
	s.Created("root", began)
	s.Awaits("1", []string{"else"})
	if s.Idle(at(1000)) {
		t.Error("what waits is forgotten")
	}
	s.AwaitsNoMore(at(900), "1")
	if !s.Idle(at(1000)) {
		t.Error("a claim counts as new for ever")
	}
}
