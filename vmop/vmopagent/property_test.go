package vmopagent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/vmopagent"
)

// world is a machine with a model of its guest: an agent that takes commands in
// order and says what it did, when it wants to.
type world struct {
	t   *rapid.T
	m   *vmopagent.Machine
	now time.Time

	wanted  string
	up      bool     // an agent runs and has said 220
	user    string   // who is logged in, in truth
	inbox   []string // commands that the agent has not looked at
	answers []string // what it did and has not said
	sent    int      // commands since the desired user or the agent changed
}

const (
	timeout  = time.Minute
	attempts = 3
)

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: time.Unix(1700000000, 0), wanted: users.Draw(t, "wanted")}
	w.m = vmopagent.NewMachine(vmopagent.Config{Timeout: timeout, Retry: 10 * time.Second, Attempts: attempts}, w.wanted)
	return w
}

var users = rapid.SampledFrom([]string{"", "alice", "bob", "root"})

// deliver hands what the machine says to the agent.
func (w *world) deliver(lines []string) {
	if len(lines) > 1 {
		w.t.Fatalf("%q at once", lines)
	}
	for _, line := range lines {
		if !w.up {
			w.t.Fatalf("%q is said to nobody", line)
		}
		if strings.ContainsAny(line, "\r\n") {
			w.t.Fatalf("%q is not a line", line)
		}
		if w.sent++; w.sent > attempts {
			w.t.Fatalf("%q is attempt %d", line, w.sent)
		}
		w.inbox = append(w.inbox, line)
	}
}

func (w *world) want(user string) {
	if user != w.wanted {
		w.sent = 0
	}
	w.wanted = user
	w.deliver(w.m.Want(w.now, user))
	if again := w.m.Want(w.now, user); again != nil {
		w.t.Fatalf("the same user again: %q", again)
	}
}

// work lets the agent do one command. broken means that it fails for now.
func (w *world) work(broken bool) {
	if len(w.inbox) == 0 {
		return
	}
	line := w.inbox[0]
	w.inbox = w.inbox[1:]
	user := strings.TrimPrefix(line, "login ")
	switch {
	case broken:
		w.answers = append(w.answers, "451 out of order")
	case line == "logout":
		w.user = ""
		w.answers = append(w.answers, "202 nobody")
	case user == "root":
		w.answers = append(w.answers, "504 not root")
	default:
		w.user = user
		w.answers = append(w.answers, "201 "+user)
	}
}

func (w *world) say() {
	if len(w.answers) == 0 {
		return
	}
	line := w.answers[0]
	w.answers = w.answers[1:]
	w.deliver(w.m.Line(w.now, line+"\n"))
}

func (w *world) restart() {
	w.up, w.inbox, w.answers, w.sent = true, nil, nil, 0
	w.deliver(w.m.Line(w.now, "220 hello"))
}

func (w *world) die(how int) {
	w.up, w.inbox, w.answers, w.sent = false, nil, nil, 0
	if how == 0 {
		w.deliver(w.m.Line(w.now, "240 bye"))
	} else {
		w.m.Closed(w.now)
	}
}

// pass lets time pass, with the ticks that the machine asks for.
func (w *world) pass(d time.Duration) {
	for end := w.now.Add(d); ; {
		wake := w.m.Wake()
		if wake.IsZero() || wake.After(end) {
			w.now = end
			return
		}
		if wake.After(w.now) {
			w.now = wake
		}
		w.deliver(w.m.Tick(w.now))
		if again := w.m.Wake(); !again.IsZero() && !again.After(w.now) {
			w.t.Fatalf("a tick at %v is wanted again at once", w.now)
		}
	}
}

// invariants hold whatever an agent does.
func (w *world) invariants() {
	s := w.m.State()
	if s.Connected != w.up {
		w.t.Fatalf("connected %v, in truth %v", s.Connected, w.up)
	}
	if !s.Connected && s.LoggedInUser != "" {
		w.t.Fatalf("without an agent: %+v", s)
	}
	if (s.Reason == vmopagent.ReasonNotRequested) != (w.wanted == "") {
		w.t.Fatalf("%q is wanted: %+v", w.wanted, s)
	}
	if s.Reason == vmopagent.ReasonLoggedIn && s.LoggedInUser != w.wanted {
		w.t.Fatalf("%q is wanted: %+v", w.wanted, s)
	}
	if (s.Failure == "") != (s.Message == "") {
		w.t.Fatalf("%+v", s)
	}
}

// catchUp lets an agent do and say all that it owes, for so many minutes.
func (w *world) catchUp(minutes int) {
	for range minutes {
		for len(w.inbox)+len(w.answers) > 0 {
			w.work(false)
			w.say()
		}
		w.pass(timeout)
	}
}

// settle lets an honest and quick agent do its work, and expects what is desired to
// become true, and silence after it.
func (w *world) settle() {
	w.want(w.wanted)
	w.catchUp(20)
	s, wanted := w.m.State(), w.wanted
	if wanted == "root" {
		if s.Failure != vmopagent.FailureRefused || !strings.Contains(s.Message, "504") {
			w.t.Fatalf("after settling: %+v", s)
		}
	} else if s.LoggedInUser != wanted || w.user != wanted || s.Failure != "" {
		w.t.Fatalf("after settling %q: %+v, in truth %q", wanted, s, w.user)
	}
	if !w.m.Wake().IsZero() {
		w.t.Fatalf("settled, but it wants to be woken at %v", w.m.Wake())
	}
	sent := w.sent
	w.pass(24 * time.Hour)
	if w.sent != sent {
		w.t.Fatal("settled, but it speaks")
	}
}

// With an agent that is honest and answers in time, what is reported is true.
func TestAnHonestAgentIsReportedTruly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		owed := 0 // for how many steps the agent has owed an answer
		t.Repeat(map[string]func(*rapid.T){
			"want":         func(t *rapid.T) { w.want(users.Draw(t, "user")) },
			"work":         func(*rapid.T) { w.work(false) },
			"work in vain": func(*rapid.T) { w.work(true) },
			"say": func(*rapid.T) {
				if len(w.answers) > 0 {
					owed = 0
				}
				w.say()
			},
			"restart": func(*rapid.T) { w.restart(); owed = 0 },
			"die":     func(t *rapid.T) { w.die(rapid.IntRange(0, 1).Draw(t, "how")) },
			"pass": func(*rapid.T) {
				if owed < 5 {
					w.pass(timeout / 6)
				}
				if owed++; len(w.inbox)+len(w.answers) == 0 {
					owed = 0
				}
			},
			"": func(t *rapid.T) {
				w.invariants()
				s := w.m.State()
				if s.LoggedInUser != "" && s.LoggedInUser != w.user && len(w.inbox)+len(w.answers) == 0 {
					t.Fatalf("in truth it is %q: %+v", w.user, s)
				}
				if s.Reason == vmopagent.ReasonLoggedIn && w.user != w.wanted {
					t.Fatalf("in truth it is %q: %+v", w.user, s)
				}
				if s.Failure == vmopagent.FailureNoAnswer {
					t.Fatalf("the agent answers in time: %+v", s)
				}
			},
		})
		if !w.up {
			w.restart()
		}
		w.want(map[bool]string{true: "carol", false: w.wanted}[rapid.Bool().Draw(t, "another user at last")])
		w.restart()
		w.settle()
	})
}

// An agent that is late, loses answers, gives wrong ones and makes noise: it is
// asked a bounded number of times, and once it behaves and has caught up, another
// user puts everything right, with or without a restart.
func TestABadAgentDoesNoLastingHarm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"want":    func(t *rapid.T) { w.want(users.Draw(t, "user")) },
			"work":    func(t *rapid.T) { w.work(rapid.Bool().Draw(t, "in vain")) },
			"say":     func(*rapid.T) { w.say() },
			"restart": func(*rapid.T) { w.restart() },
			"die":     func(t *rapid.T) { w.die(rapid.IntRange(0, 1).Draw(t, "how")) },
			"lose a command": func(*rapid.T) {
				if len(w.inbox) > 0 {
					w.inbox = w.inbox[1:]
				}
			},
			"lose an answer": func(*rapid.T) {
				if len(w.answers) > 0 {
					w.answers = w.answers[1:]
				}
			},
			"noise": func(t *rapid.T) {
				w.deliver(w.m.Line(w.now, rapid.SampledFrom([]string{
					"", "\n", "login failed", "102 working", "2 01", "2011 x", "2", "201alice", "\x00\xff", "150", "199 \n",
				}).Draw(t, "line")))
			},
			"wrong answer": func(t *rapid.T) {
				w.deliver(w.m.Line(w.now, fmt.Sprint(rapid.SampledFrom([]int{200, 201, 202, 203, 300, 451, 504, 999}).Draw(t, "code"), " wrong")))
			},
			"pass": func(t *rapid.T) {
				w.pass(time.Duration(rapid.IntRange(1, int(3*timeout/time.Second)).Draw(t, "seconds")) * time.Second)
			},
			"": func(*rapid.T) { w.invariants() },
		})
		if !w.up || rapid.Bool().Draw(t, "restart at last") {
			w.restart()
		}
		w.catchUp(4) // an answer that is minutes late may be taken for another one's
		w.want(rapid.SampledFrom([]string{"carol", "dave"}).Draw(t, "another"))
		w.want(users.Draw(t, "last"))
		w.settle()
	})
}

// Any line and any name: no panic, and no more than a line comes out.
func FuzzLine(f *testing.F) {
	f.Add("220 hello", "alice")
	f.Add("220", "alice\nlogout")
	f.Add("201 \xff", "")
	f.Fuzz(func(t *testing.T, line, user string) {
		now := time.Unix(1, 0)
		m := vmopagent.NewMachine(vmopagent.Config{}, "")
		m.Want(now, user)
		for _, l := range []string{line, "220 x", line, line} {
			for _, out := range m.Line(now, l) {
				if strings.ContainsAny(out, "\r\n") || out != "logout" && out != "login "+user {
					t.Fatalf("%q", out)
				}
			}
			if msg := m.State().Message; strings.ContainsAny(msg, "\r\n\x1b") || len(msg) > 4096 {
				t.Fatalf("%q", msg)
			}
		}
	})
}
