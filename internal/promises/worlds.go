package promises

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// Violation is a promise that was broken.
type Violation struct{ Promise, Detail string }

func (v Violation) Error() string { return v.Promise + ": " + v.Detail }

// World is common to the worlds of all kinds: random choices, decisions by a snapshot S, a clock,
// versions of objects, and a log.
type World[S any] struct {
	// Draw returns one of n choices.
	Draw func(label string, n int) int
	// Decide is the decision under test.
	Decide func(S) reconcile.Plan
	Now    time.Time
	// Log records what happened.
	Log []string
	// Serial counts the versions.
	Serial int
}

// Note adds to the log.
func (w *World[S]) Note(format string, args ...any) {
	w.Log = append(w.Log, fmt.Sprintf(format, args...))
}

// Violated reports that a promise is broken. The names of promises are their registry: each has a
// mutant.
func (w *World[S]) Violated(promise, format string, args ...any) {
	panic(Violation{promise, fmt.Sprintf(format, args...)})
}

// Version returns the next version of an object.
func (w *World[S]) Version() string { w.Serial++; return strconv.Itoa(w.Serial) }

// UID returns the UID of a new object.
func (w *World[S]) UID() types.UID { return types.UID("u" + w.Version()) }

// Broken returns the first promise broken during live; nil if none is.
func Broken(live func()) (broken *Violation) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case Violation:
			broken = &v
		default:
			panic(v)
		}
	}()
	live()
	return nil
}

// Hold runs a life of a world that draws from rapid, and fails if a promise is broken.
func (w *World[S]) Hold(t *rapid.T, life func() *Violation) {
	w.Draw = func(label string, n int) int {
		if n == 1 {
			return 0
		}
		return rapid.IntRange(0, n-1).Draw(t, label)
	}
	if v := life(); v != nil {
		t.Fatalf("%v\n%s", v, strings.Join(w.Log, "\n"))
	}
}

// Mutant is a decision with one fault, and the promise that must notice it: a missing guard, which
// is simulated by hiding from the decision what it guards against, or a wrong plan.
type Mutant[S any] struct {
	Fault, Promise string
	Before         func(*S)
	After          func(*S, *reconcile.Plan)
}

// decide returns the decision with the fault. A mutant that changes the snapshot gets a copy.
func (m *Mutant[S]) decide(decide func(S) reconcile.Plan, own func(S) S) func(S) reconcile.Plan {
	return func(s S) reconcile.Plan {
		mine := s
		if m.Before != nil {
			mine = own(s)
			m.Before(&mine)
		}
		p := decide(mine)
		if m.After != nil {
			m.After(&s, &p)
		}
		return p
	}
}

// Without returns a mutation of plans that drops some actions.
func Without[S any](drop func(reconcile.Action) bool) func(*S, *reconcile.Plan) {
	return func(_ *S, p *reconcile.Plan) { p.Actions = slices.DeleteFunc(p.Actions, drop) }
}

// Adds returns a mutation of plans that adds an action before all others; nil is none.
func Adds[S any](a func(*S) reconcile.Action) func(*S, *reconcile.Plan) {
	return func(s *S, p *reconcile.Plan) {
		if a := a(s); a != nil {
			p.Actions = append([]reconcile.Action{a}, p.Actions...)
		}
	}
}

// Kind is what the mutants of a kind are tried with.
type Kind[S any] struct {
	Decide func(S) reconcile.Plan
	// Own returns a copy of a snapshot whose objects may be changed.
	Own func(S) S
	// Live runs a life in a new world with these choices and decisions.
	Live    func(t *testing.T, draw func(label string, n int) int, decide func(S) reconcile.Plan) *Violation
	Mutants []Mutant[S]
}

// lives is so large that each fault shows in many of them.
const lives uint64 = 1500

// Break shows that broken promises would be noticed.
func (k *Kind[S]) Break(t *testing.T) {
	t.Helper()
	lived := func(t *testing.T, decide func(S) reconcile.Plan, number uint64) *Violation {
		r := rand.New(rand.NewPCG(number, 0))
		return k.Live(t, func(_ string, n int) int { return r.IntN(n) }, decide)
	}
	for n := range uint64(100) {
		if v := lived(t, k.Decide, n); v != nil {
			t.Fatalf("without a fault: %v", v)
		}
	}
	for _, m := range k.Mutants {
		t.Run(m.Fault, func(t *testing.T) {
			t.Parallel()
			for n := range lives {
				// Another promise may notice the fault first, in some lives.
				if v := lived(t, m.decide(k.Decide, k.Own), n); v != nil && v.Promise == m.Promise {
					return
				}
			}
			t.Errorf("nobody notices; want %q", m.Promise)
		})
	}
}

// Registered compares the promises in the sources of the tests with the mutants: each must have
// one, and every mutant must be about one of them.
func (k *Kind[S]) Registered(t *testing.T) {
	t.Helper()
	named, broken := Named(t), map[string]bool{}
	for _, m := range k.Mutants {
		broken[m.Promise] = true
		if !slices.Contains(named, m.Promise) {
			t.Errorf("%q breaks %q, which nobody has promised", m.Fault, m.Promise)
		}
	}
	for _, p := range named {
		if !broken[p] {
			t.Errorf("no mutant breaks %q", p)
		}
	}
}
