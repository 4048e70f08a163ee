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

// overtaking is how much earlier than its port's event a line may come: QEMU emits that event at
// most once a second.
const overtaking = 2 * time.Second

const maxUser = 256

// Config are the limits of a Machine. Zero values mean the defaults.
type Config struct {
	// Timeout is how long a command may go unanswered.
	Timeout time.Duration
	// Retry is the pause before a command is repeated; it doubles each time.
	Retry time.Duration
	// Attempts is how often a command is sent for one desired user, including the first time.
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

// Reason is the reason of the condition UserLoggedIn, by VM-Operator's names.
type Reason string

// The reasons. The condition is true only with ReasonLoggedIn.
const (
	ReasonNotRequested Reason = conditions.ReasonNotRequested          // no user is wanted
	ReasonDisconnected Reason = conditions.ReasonVmopAgentDisconnected // no agent is connected
	ReasonProcessing   Reason = conditions.ReasonProcessing            // wanted, and not confirmed
	ReasonLoggedIn     Reason = conditions.ReasonLoggedIn              // the wanted user is confirmed
)

// Failure is why a desired user cannot be logged in.
type Failure string

// The failures.
const (
	NoFailure          Failure = ""
	FailureInvalidUser Failure = "InvalidUser" // a name that cannot be sent
	FailureNoAnswer    Failure = "NoAnswer"    // the agent did not answer in time
	FailureFailed      Failure = "Failed"      // the agent tried and failed (4xx)
	FailureRefused     Failure = "Refused"     // the agent refuses (5xx)
)

// State is the reported state. It is comparable: report it when it differs.
type State struct {
	// Wanted is the user to be logged in; "" for none.
	Wanted string
	// Connected reports whether an agent is connected (the condition VmopAgentConnected).
	Connected bool
	// LoggedInUser was confirmed by the agent; "" is none or unknown.
	LoggedInUser string
	// Reason is the reason of the condition UserLoggedIn.
	Reason Reason
	// Failure is the last failure for the desired user, and Message the same for people. They may
	// be set while the command is retried.
	Failure Failure
	Message string
}

type belief struct {
	known bool
	user  string // "" is no user
}

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

// Machine decides what to send to an agent. Its methods return the lines to send, without line
// ends; times must not go backwards. It is not safe for concurrent use.
type Machine struct {
	config    Config
	wanted    string
	target    string // wanted, or "" if that cannot be sent
	connected bool
	greeted   time.Time // when the latest agent sent 220
	closed    time.Time // when the port was closed last
	confirmed belief
	sent      []command // in the order in which they will be answered

	attempts int       // of the desired user
	retryAt  time.Time // not before
	refused  bool      // not retried until something changes
	failure  Failure
	message  string
}

// NewMachine returns a machine for a port without an agent yet. wanted is the user to log in, ""
// for none.
func NewMachine(c Config, wanted string) *Machine {
	m := &Machine{config: c.withDefaults(), wanted: wanted}
	m.begin()
	return m
}

// Want sets the user to log in, "" for none. Setting the same user again has no effect.
func (m *Machine) Want(now time.Time, user string) []string {
	if user == m.wanted {
		return nil
	}
	m.wanted = user
	m.begin()
	return m.next(now)
}

// Closed is called when the guest has closed the port (QEMU's event VSERPORT_CHANGE) or the
// connection has ended.
func (m *Machine) Closed(now time.Time) {
	m.leave()
	m.begin()
	m.closed = now
}

// Opened is called when the guest has opened the port. Usually the agent's greeting follows. But
// events and lines arrive on different connections: if the port seemed to close just after a
// greeting, that was the greeting of the agent that opens it now.
func (m *Machine) Opened(now time.Time) []string {
	if m.connected || m.greeted.IsZero() || m.closed.Sub(m.greeted) > overtaking || now.Sub(m.closed) > overtaking {
		return nil
	}
	m.arrive(now)
	return m.next(now)
}

// Tick advances the time. It must be called at the time that Wake returns, and is harmless
// otherwise.
func (m *Machine) Tick(now time.Time) []string { return m.next(now) }

// Line handles a line from the agent, with or without its line end.
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
		// 1xx is progress. Without a 220, nothing was sent that it could answer.
	case code == 201:
		m.answered(now, true)
	case code == 202:
		m.answered(now, false)
	default:
		m.failed(now, code, text)
	}
	return m.next(now)
}

// Wake returns when Tick must be called next; zero if no time is due.
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

// State returns the state to report.
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

func (m *Machine) begin() {
	m.attempts, m.retryAt, m.refused = 0, time.Time{}, false
	m.failure, m.message = NoFailure, ""
	m.target = m.wanted
	if checkUser(m.wanted) != nil {
		m.target = "" // this cancels the previously wanted user
	}
}

func (m *Machine) arrive(now time.Time) {
	m.leave()
	m.connected = true
	m.greeted = now
	m.begin()
}

// leave forgets what depends on the agent. A confirmed logout is kept: an agent's restart logs no
// user in.
func (m *Machine) leave() {
	m.connected = false
	if len(m.sent) > 0 || m.confirmed.user != "" {
		m.confirmed = belief{}
	}
	m.sent = nil
}

// answered handles the confirmation of the oldest login or logout. Older commands of the other kind
// will not be answered any more.
func (m *Machine) answered(now time.Time, login bool) {
	for i, c := range m.sent {
		if (c.user != "") != login {
			continue
		}
		m.sent = m.sent[i+1:]
		for _, later := range m.sent {
			if login && later.user != "" && later.user != c.user {
				// It may have been the answer to that one.
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

// settleRepetitions stops waiting for repetitions of an answered command if no other is
// outstanding: this may have been the answer to the last of them.
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

// failed handles any other answer: it is to the oldest command.
func (m *Machine) failed(now time.Time, code int, text string) {
	if len(m.sent) == 0 {
		return
	}
	c := m.sent[0]
	m.sent = m.sent[1:]
	m.settleRepetitions(now, c)
	// The effect of a failed command is unknown.
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

// expire marks commands without an answer. Late answers may still come: the commands are forgotten
// only after another Timeout.
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

// pause delays the next attempt. attempts may be 0: the failed command can date from when the same
// user was wanted before.
func (m *Machine) pause(now time.Time) {
	m.retryAt = now.Add(m.config.Retry << min(max(m.attempts-1, 0), 10))
}

func (m *Machine) underWay() bool {
	for _, c := range m.sent {
		if !c.late {
			return true
		}
	}
	return false
}

func (m *Machine) pending() bool {
	return m.connected && !m.refused && m.attempts < m.config.Attempts && m.confirmed != belief{true, m.target}
}

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

// checkUser rejects names that would not arrive unchanged: after a line feed, another command would
// begin.
func checkUser(user string) error {
	if len(user) > maxUser {
		return fmt.Errorf("user: %d bytes, at most %d can be sent", len(user), maxUser)
	}
	if !utf8.ValidString(user) || strings.ContainsFunc(user, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return fmt.Errorf("user %+q: contains white space or characters that cannot be printed", user)
	}
	return nil
}

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
