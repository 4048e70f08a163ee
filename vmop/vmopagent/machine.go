package vmopagent

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/vmop/sdk/vmop/conditions"
)

// Defaults of Config. A login may create a user and restart a desktop.
const (
	DefaultTimeout  = time.Minute
	DefaultRetry    = 10 * time.Second
	DefaultAttempts = 4
)

// overtaking is how much earlier than it should a line may come, compared with
// the news of its port: QEMU sends that once in a second at most.
const overtaking = 2 * time.Second

// maxUser is the longest name that is sent, in bytes.
const maxUser = 256

// Config are the limits of a Machine. Zero values mean the defaults.
type Config struct {
	// Timeout is how long a command may go unanswered.
	Timeout time.Duration
	// Retry is the pause before a command is repeated; it doubles each time.
	Retry time.Duration
	// Attempts is how often a command is sent for one desired user, the first time included.
	Attempts int
}

func (c Config) withDefaults() Config {
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Retry <= 0 {
		c.Retry = DefaultRetry
	}
	if c.Attempts <= 0 {
		c.Attempts = DefaultAttempts
	}
	return c
}

// Reason is why the condition UserLoggedIn is true or false, in VM-Operator's
// words.
type Reason string

// The reasons. ReasonLoggedIn is the only one with which the condition is true.
const (
	ReasonNotRequested Reason = conditions.ReasonNotRequested          // nobody is wanted
	ReasonDisconnected Reason = conditions.ReasonVmopAgentDisconnected // there is no agent
	ReasonProcessing   Reason = conditions.ReasonProcessing            // wanted, and not confirmed
	ReasonLoggedIn     Reason = conditions.ReasonLoggedIn              // the wanted user is confirmed
)

// Failure is what stands in the way of a desired user.
type Failure string

// The failures.
const (
	NoFailure          Failure = ""
	FailureInvalidUser Failure = "InvalidUser" // a name that cannot be sent
	FailureNoAnswer    Failure = "NoAnswer"    // the agent did not answer in time
	FailureFailed      Failure = "Failed"      // the agent tried and could not (4xx)
	FailureRefused     Failure = "Refused"     // the agent will not (5xx)
)

// State is what there is to report. It is comparable: report it when it differs.
type State struct {
	// Wanted is the user to be logged in; "" is nobody.
	Wanted string
	// Connected tells that an agent is there (the condition VmopAgentConnected).
	Connected bool
	// LoggedInUser was confirmed by the agent; "" is nobody, or not known.
	LoggedInUser string
	// Reason is the reason of the condition UserLoggedIn.
	Reason Reason
	// Failure says what went wrong last with the desired user, and Message the
	// same for people. They may be set while a repetition is under way.
	Failure Failure
	Message string
}

// belief is what the machine knows about who is logged in.
type belief struct {
	known bool
	user  string // "" is nobody
}

// command is one that was sent and not answered.
type command struct {
	user     string // "" is a logout
	deadline time.Time
	late     bool // its deadline has passed
}

func (c command) String() string {
	if c.user == "" {
		return "logout"
	}
	return "login " + c.user
}

// Machine decides what to tell an agent. Its methods return the lines to send,
// without their ends; times must not go backwards. It is not safe for concurrent
// use.
type Machine struct {
	config    Config
	wanted    string
	target    string // wanted, or nobody if that cannot be sent
	connected bool
	greeted   time.Time // when the latest agent said 220
	closed    time.Time // when the port was closed last
	confirmed belief
	sent      []command // in the order in which they will be answered

	attempts int       // of the desired user
	retryAt  time.Time // not before
	refused  bool      // hopeless until something changes
	failure  Failure
	message  string
}

// NewMachine returns a machine for a port on which nobody has spoken yet. wanted is
// the user to log in, "" for nobody.
func NewMachine(c Config, wanted string) *Machine {
	m := &Machine{config: c.withDefaults(), wanted: wanted}
	m.begin()
	return m
}

// Want sets the user to log in, "" for nobody. The user who is wanted already
// changes nothing.
func (m *Machine) Want(now time.Time, user string) []string {
	if user == m.wanted {
		return nil
	}
	m.wanted = user
	m.begin()
	return m.next(now)
}

// Closed tells that the guest has closed the port (QEMU's event VSERPORT_CHANGE)
// or that the connection has ended.
func (m *Machine) Closed(now time.Time) {
	m.leave()
	m.begin()
	m.closed = now
}

// Opened tells that the guest has opened the port. Usually the agent's greeting
// comes next. But news of the port and lines come on different ways: if the port
// seemed to close just after a greeting, the greeting was the one of the agent
// that opens it now.
func (m *Machine) Opened(now time.Time) []string {
	if m.connected || m.greeted.IsZero() || m.closed.Sub(m.greeted) > overtaking || now.Sub(m.closed) > overtaking {
		return nil
	}
	m.arrive(now)
	return m.next(now)
}

// Tick tells the time. It is needed at the time that Wake returns, and harmless
// otherwise.
func (m *Machine) Tick(now time.Time) []string { return m.next(now) }

// Line takes a line from the agent, with or without its end.
func (m *Machine) Line(now time.Time, line string) []string {
	code, text, ok := parseLine(line)
	if !ok {
		return nil // a shell's complaint, or half a line
	}
	m.expire(now)
	switch {
	case code == 220:
		m.arrive(now)
	case code == 240:
		m.Closed(now)
		m.greeted = time.Time{}
	case !m.connected || code < 200:
		// 1xx is progress. Without a 220 there is nothing that it could answer.
	case code == 201:
		m.answered(now, true)
	case code == 202:
		m.answered(now, false)
	default:
		m.failed(now, code, text)
	}
	return m.next(now)
}

// Wake returns when Tick is needed next; zero if only news can change anything.
func (m *Machine) Wake() time.Time {
	var wake time.Time
	at := func(t time.Time) {
		if wake.IsZero() || t.Before(wake) {
			wake = t
		}
	}
	for _, c := range m.sent {
		if c.late {
			at(c.deadline.Add(m.config.Timeout)) // to be forgotten
		} else {
			at(c.deadline)
		}
	}
	if m.pending() && !m.underWay() {
		at(m.retryAt)
	}
	return wake
}

// State returns what there is to report.
func (m *Machine) State() State {
	s := State{Wanted: m.wanted, Connected: m.connected, Reason: ReasonProcessing, Failure: m.failure, Message: m.message}
	if m.connected {
		s.LoggedInUser = m.confirmed.user
	}
	if err := checkUser(m.wanted); err != nil {
		s.Failure, s.Message = FailureInvalidUser, err.Error()
	}
	switch {
	case m.wanted == "":
		s.Reason = ReasonNotRequested
	case !m.connected:
		s.Reason = ReasonDisconnected
	case m.confirmed == (belief{true, m.wanted}) && !m.underWay():
		s.Reason = ReasonLoggedIn
	}
	return s
}

// begin starts anew with the desired user.
func (m *Machine) begin() {
	m.attempts, m.retryAt, m.refused = 0, time.Time{}, false
	m.failure, m.message = NoFailure, ""
	m.target = m.wanted
	if checkUser(m.wanted) != nil {
		m.target = "" // whoever was wanted before is not any more
	}
}

// arrive is the start of an agent, the first or another one.
func (m *Machine) arrive(now time.Time) {
	m.leave()
	m.connected = true
	m.greeted = now
	m.begin()
}

// leave forgets what only holds while the agent is there. That nobody is logged in
// stays known if it was confirmed: an agent's restart logs nobody in.
func (m *Machine) leave() {
	m.connected = false
	if len(m.sent) > 0 || m.confirmed.user != "" {
		m.confirmed = belief{}
	}
	m.sent = nil
}

// answered takes the confirmation of the oldest login or logout. Older commands of
// the other kind will not be answered any more.
func (m *Machine) answered(now time.Time, login bool) {
	for i, c := range m.sent {
		if (c.user != "") != login {
			continue
		}
		m.sent = m.sent[i+1:]
		for _, later := range m.sent {
			if login && later.user != "" && later.user != c.user {
				// It may as well be the answer to that one.
				m.confirmed = belief{}
				return
			}
		}
		m.confirmed = belief{true, c.user}
		m.settleRepetitions(now, c)
		if c.user == m.target {
			m.failure, m.message = NoFailure, ""
		}
		return
	}
}

// settleRepetitions stops waiting for repetitions of a command that was answered, if
// nothing else is on its way. They may be answered too, or not: perhaps this was the
// answer to the last of them.
func (m *Machine) settleRepetitions(now time.Time, answered command) {
	if slices.ContainsFunc(m.sent, func(later command) bool { return later.user != answered.user }) {
		return
	}
	for i := range m.sent {
		if !m.sent[i].late {
			m.sent[i].late, m.sent[i].deadline = true, now
		}
	}
}

// failed takes any other answer: it is to the oldest command.
func (m *Machine) failed(now time.Time, code int, text string) {
	if len(m.sent) == 0 {
		return
	}
	c := m.sent[0]
	m.sent = m.sent[1:]
	m.settleRepetitions(now, c)
	// What a command that failed has changed is not known.
	m.confirmed = belief{}
	if c.user != m.target {
		return
	}
	m.message = fmt.Sprintf("%s: the agent says %d %s", c, code, printable(text))
	if code >= 500 {
		m.failure, m.refused = FailureRefused, true
		return
	}
	m.failure = FailureFailed
	m.pause(now)
}

// expire finds commands without an answer. Their answers may still come: they are
// forgotten only after another Timeout.
func (m *Machine) expire(now time.Time) {
	kept := m.sent[:0:0]
	for _, c := range m.sent {
		if !c.late && !now.Before(c.deadline) {
			c.late = true
			m.confirmed = belief{}
			if c.user == m.target {
				m.failure = FailureNoAnswer
				m.message = fmt.Sprintf("%s: no answer within %v", c, m.config.Timeout)
				m.pause(now)
			}
		}
		if c.late && !now.Before(c.deadline.Add(m.config.Timeout)) {
			continue
		}
		kept = append(kept, c)
	}
	m.sent = kept
}

// pause puts the next attempt off. There may have been none yet: the command that
// failed can be from before, when the same user was wanted already.
func (m *Machine) pause(now time.Time) {
	m.retryAt = now.Add(m.config.Retry << min(max(m.attempts-1, 0), 10))
}

// underWay reports whether an answer is waited for.
func (m *Machine) underWay() bool {
	for _, c := range m.sent {
		if !c.late {
			return true
		}
	}
	return false
}

// pending reports whether there is something to tell the agent.
func (m *Machine) pending() bool {
	return m.connected && !m.refused && m.attempts < m.config.Attempts && m.confirmed != belief{true, m.target}
}

// next returns what to send now.
func (m *Machine) next(now time.Time) []string {
	m.expire(now)
	if !m.pending() || m.underWay() || now.Before(m.retryAt) {
		return nil
	}
	c := command{user: m.target, deadline: now.Add(m.config.Timeout)}
	m.sent = append(m.sent, c)
	m.attempts++
	return []string{c.String()}
}

// parseLine takes apart three digits, a space and a text.
func parseLine(line string) (code int, text string, ok bool) {
	line = strings.TrimRight(line, "\r\n")
	if len(line) < 3 || len(line) > 3 && line[3] != ' ' {
		return 0, "", false
	}
	for i := range 3 {
		if line[i] < '0' || line[i] > '9' {
			return 0, "", false
		}
		code = 10*code + int(line[i]-'0')
	}
	return code, strings.TrimSpace(line[3:]), true
}

// checkUser finds names that would not arrive as they are: a line feed would even
// be another command.
func checkUser(user string) error {
	if len(user) > maxUser {
		return fmt.Errorf("user: %d bytes, at most %d can be sent", len(user), maxUser)
	}
	if !utf8.ValidString(user) || strings.ContainsFunc(user, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return fmt.Errorf("user %+q: contains white space or characters that cannot be printed", user)
	}
	return nil
}

// printable makes the guest's text fit for a status.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if r := []rune(text); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return text
}
