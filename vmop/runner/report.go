package runner

import (
	"time"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile/live"
)

// Phase is where a machine is in its life. The names are VM-Operator's.
type Phase string

// The phases in their order. A machine whose start fails goes from Starting to
// Stopped.
const (
	PhaseInitializing Phase = "Initializing"
	PhaseStarting     Phase = "Starting"
	PhaseBooting      Phase = "Booting"
	PhaseTerminating  Phase = "Terminating"
	PhaseStopped      Phase = "Stopped"
)

// State is what the engine knows about its machine.
type State struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	UUID      string `json:"uuid,omitempty"`
	Phase     Phase  `json:"phase"`
	// Since is when the phase began.
	Since time.Time `json:"since"`
	// Message says what the machine is doing, or waiting for.
	Message string `json:"message,omitempty"`
	// Started is when the guest began to execute; nil before.
	Started *time.Time `json:"started,omitempty"`
	// RunnerPID and QEMUPID are process ids; 0 where there is no process.
	RunnerPID int `json:"runnerPid,omitempty"`
	QEMUPID   int `json:"qemuPid,omitempty"`
	// RunnerVersion and QEMUVersion are for people.
	RunnerVersion string              `json:"runnerVersion,omitempty"`
	QEMUVersion   string              `json:"qemuVersion,omitempty"`
	MachineType   string              `json:"machineType,omitempty"`
	Accelerator   qemucmd.Accelerator `json:"accelerator,omitempty"`
	// CPUs is the number of CPUs plugged, MaximumCPUs of the slots.
	CPUs        int `json:"cpus,omitempty"`
	MaximumCPUs int `json:"maximumCpus,omitempty"`
	// RAM is what the balloon leaves and MaximumRAM all of it, in bytes.
	RAM        int64  `json:"ram,omitempty"`
	MaximumRAM int64  `json:"maximumRam,omitempty"`
	DataDir    string `json:"dataDir,omitempty"`
	RuntimeDir string `json:"runtimeDir,omitempty"`
	// Sockets by purpose. The console is served by the runner and takes any
	// number of clients.
	Sockets map[string]string `json:"sockets,omitempty"`
	// Paused says that the guest does not execute although the machine is there:
	// it was paused, or stopped because of an error. The condition GuestExecuting
	// says why.
	Paused bool `json:"paused,omitempty"`
	// ConfigGeneration counts the configurations that the running machine was
	// given; the conditions are about the last one of that number.
	ConfigGeneration int `json:"configGeneration,omitempty"`
	// Conditions say how far the running machine is as its configuration says.
	Conditions []live.Condition `json:"conditions,omitempty"`
	// ConsoleClient is the address of the client of the display, "unix" for one
	// on a UNIX socket; empty if there is none.
	ConsoleClient string `json:"consoleClient,omitempty"`
	// DisplayPasswordSerial counts how often the display's password was set.
	DisplayPasswordSerial int64 `json:"displayPasswordSerial,omitempty"`
	// PowerdownTimeout in seconds.
	PowerdownTimeout int64 `json:"powerdownTimeout,omitempty"`
	// Outcome is how the machine ended; nil before.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Level says how much a message matters.
type Level string

// The levels of a [Message].
const (
	LevelInfo    Level = "info"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// Message is something that happened.
type Message struct {
	Time  time.Time
	Level Level
	// Source is "runner", the name of the process that printed Text, or "console"
	// for what the guest printed on its serial console.
	Source string
	Text   string
}

// Reporter is told what happens to a machine. The engine calls it from several
// goroutines, one call at a time, and waits for the call: an implementation
// that talks to something slow must buffer.
type Reporter interface {
	// State tells the whole state after each change.
	State(State)
	// Message tells of a single happening.
	Message(Message)
}

// Reporters passes everything to several reporters in their order.
type Reporters []Reporter

// State implements [Reporter].
func (rs Reporters) State(s State) {
	for _, r := range rs {
		r.State(s)
	}
}

// Message implements [Reporter].
func (rs Reporters) Message(m Message) {
	for _, r := range rs {
		r.Message(m)
	}
}
