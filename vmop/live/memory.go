package live

import (
	"maps"
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Memory is what must be remembered between decisions, because QEMU cannot be
// asked for it. [Start] makes the first one.
type Memory struct {
	// Tries are the attempts by part.
	Tries map[string]Try
	// ResetCounter is the counter up to which resets are done.
	ResetCounter int64
	// ResetEnds says that a reset would end the machine.
	ResetEnds bool
	// ResetUnsure says that it may be otherwise; see [Memory.Unsure].
	ResetUnsure bool
	// Resets is the number of resets that were seen, ResetAt when the last was.
	Resets  int
	ResetAt time.Time
	// Secrets are what the protocols of the display have, by their names.
	Secrets map[string]DisplayState
	// Password is the digest of the last display password that all protocols
	// had, and PasswordSerial counts them: who waits for a new password may then
	// use it, whichever way he comes.
	Password       string
	PasswordSerial int64
	// Balloon is what the guest was asked to have last, in bytes; 0 is nothing. A guest that has
	// its target may still be changing.
	Balloon int64
	// Power is the number of the last request that was fulfilled.
	Power int
	// Full says that the machine was found paused for a full disk.
	Full bool
}

// DisplayState is what a protocol of the display has.
type DisplayState struct {
	// Password is the digest of the password that is set.
	Password string
	// Expiry is what was set last, and for which password; empty is never.
	Expiry string
}

// Try records attempts to reach a goal.
type Try struct {
	// Goal tells when a record is about something else.
	Goal string
	// Count is the number of attempts, Last the time of the last one.
	Count int
	Last  time.Time
	// Error is why the last attempt was refused; empty if it was not.
	Error string
}

// Start is the memory of a machine that was just started: its reset counter is
// the one from which on resets count.
func Start(c *runnerconfig.Config) Memory {
	m := Memory{ResetCounter: resetCounter(c)}
	for _, p := range DisplayProtocols(c) {
		if m.Secrets == nil {
			m.Secrets = map[string]DisplayState{}
		}
		m.Secrets[p] = DisplayState{}
	}
	return m
}

// Unsure records that QEMU has not answered, and may still do what a step asks for.
// That matters where it cannot be observed.
func (m Memory) Unsure(s Step) Memory {
	if _, ok := s.(SetResetAction); ok {
		m = m.clone()
		m.ResetUnsure = true
	}
	return m
}

// Result records that a step was executed; problem says why it was refused, and
// is empty if it was not. It also takes what QEMU reports later: that the guest
// refused. The receiver stays as it is.
func (m Memory) Result(s Step, problem string) Memory {
	if s == nil {
		return m
	}
	m = m.clone()
	if t, ok := m.Tries[s.part()]; ok {
		t.Error = problem
		m.Tries[s.part()] = t
	}
	if problem != "" {
		return m
	}
	switch s := s.(type) {
	case SetBalloon:
		m.Balloon = s.Bytes
	case SetDisplayPassword:
		state := m.Secrets[s.Protocol]
		state.Password = s.Digest
		m.Secrets[s.Protocol] = state
		for _, other := range m.Secrets {
			if other.Password != s.Digest {
				return m
			}
		}
		if m.Password != s.Digest {
			m.Password = s.Digest
			m.PasswordSerial++
		}
	case ExpireDisplayPassword:
		state := m.Secrets[s.Protocol]
		state.Expiry = expiryKey(s.Time, s.For)
		m.Secrets[s.Protocol] = state
	case Reset:
		m.ResetCounter = s.Counter
	case SetResetAction:
		m.ResetEnds, m.ResetUnsure = s.Ends, false
	case Cont:
		m.Power = max(m.Power, s.Request)
	case Stop:
		m.Power = max(m.Power, s.Request)
	}
	return m
}

func (m Memory) clone() Memory {
	m.Tries = maps.Clone(m.Tries)
	if m.Tries == nil {
		m.Tries = map[string]Try{}
	}
	m.Secrets = maps.Clone(m.Secrets)
	if m.Secrets == nil {
		m.Secrets = map[string]DisplayState{}
	}
	return m
}

// resetCounter is the counter of a configuration. Where it has not been set yet, the first count is
// a reset.
func resetCounter(c *runnerconfig.Config) int64 {
	if c != nil && c.Runner.ResetCounter != nil {
		return *c.Runner.ResetCounter
	}
	return 0
}
