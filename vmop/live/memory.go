package live

import (
	"maps"
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Memory is the state between decisions that cannot be queried from QEMU. [Start] returns the first
// one.
type Memory struct {
	// Tries are the attempts by part.
	Tries map[string]Try
	// ResetCounter is the counter of the last reset that was done.
	ResetCounter int64
	// ResetEnds reports whether a reset would end the machine.
	ResetEnds bool
	// ResetUnsure reports that ResetEnds may be wrong; see [Memory.Unsure].
	ResetUnsure bool
	// Resets is the number of observed resets, ResetAt the time of the last one.
	Resets  int
	ResetAt time.Time
	// Secrets are the states of the display's protocols, by name.
	Secrets map[string]DisplayState
	// Password is the digest of the last display password that all protocols had, and
	// PasswordSerial counts them: a client that waits for a new password may then use it with any
	// protocol.
	Password       string
	PasswordSerial int64
	// Balloon is the last size requested from the guest, in bytes; 0 is none. A guest that has
	// reached its target may still be changing.
	Balloon int64
	// Power is the number of the last fulfilled request.
	Power int
	// Full reports that the machine was found paused for a full disk.
	Full bool
}

// DisplayState is the state of a protocol of the display.
type DisplayState struct {
	// Password is the digest of the password that is set.
	Password string
	// Expiry is the last expiry that was set, and for which password; empty is never.
	Expiry string
}

// Try records attempts to reach a goal.
type Try struct {
	// Goal identifies what was attempted: a record with another goal does not apply.
	Goal string
	// Count is the number of attempts, Last the time of the last one.
	Count int
	Last  time.Time
	// Error is why the last attempt was refused; empty if it was not.
	Error string
}

// Start returns the memory of a machine that was just started: only later increments of its reset
// counter are resets.
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

// Unsure records that QEMU has not answered, and may still execute a step. That matters for a step
// whose effect cannot be observed.
func (m Memory) Unsure(s Step) Memory {
	if _, ok := s.(SetResetAction); ok {
		m = m.clone()
		m.ResetUnsure = true
	}
	return m
}

// Result returns the memory after a step was executed; problem is why it was refused, empty if it
// was not. It also records a later refusal by the guest.
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

// resetCounter returns the counter of a configuration. If it was not set before, the first count is
// a reset.
func resetCounter(c *runnerconfig.Config) int64 {
	if c != nil && c.Runner.ResetCounter != nil {
		return *c.Runner.ResetCounter
	}
	return 0
}
