package runner

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Phase is the phase of a machine's life. The names are VM-Operator's.
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

// State is the engine's knowledge of its machine.
type State struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	UUID      string `json:"uuid,omitempty"`
	Phase     Phase  `json:"phase"`
	// Since is when the phase began.
	Since time.Time `json:"since"`
	// Message is what the machine is doing, or waiting for.
	Message string `json:"message,omitempty"`
	// Started is when the guest began to execute; nil before.
	Started *time.Time `json:"started,omitempty"`
	// RunnerPID and QEMUPID are process ids; 0 where there is no process.
	RunnerPID int `json:"runnerPid,omitempty"`
	QEMUPID   int `json:"qemuPid,omitempty"`
	// QuitSignal reports whether the runner stops the machine without waiting for the guest on
	// SIGQUIT, see [Engine.TakeQuitSignal].
	QuitSignal bool `json:"quitSignal,omitempty"`
	// RunnerVersion and QEMUVersion are for people.
	RunnerVersion string `json:"runnerVersion,omitempty"`
	QEMUVersion   string `json:"qemuVersion,omitempty"`
	MachineType   string `json:"machineType,omitempty"`
	// AddressMap is the machine's map of PCI addresses; see qemucmd.Machine.
	AddressMap  int                 `json:"addressMap,omitempty"`
	Accelerator qemucmd.Accelerator `json:"accelerator,omitempty"`
	// Emulation is why the machine runs in software emulation; empty under KVM.
	Emulation Emulation `json:"emulation,omitzero"`
	// DeviceGroups are the groups that may use the machine's devices, /dev/kvm and block devices,
	// where not all users may.
	DeviceGroups []int `json:"deviceGroups,omitempty"`
	// CPUs is the number of plugged CPUs, MaximumCPUs that of the slots.
	CPUs        int `json:"cpus,omitempty"`
	MaximumCPUs int `json:"maximumCpus,omitempty"`
	// RAM is what the balloon leaves of MaximumRAM, in bytes.
	RAM        int64  `json:"ram,omitempty"`
	MaximumRAM int64  `json:"maximumRam,omitempty"`
	DataDir    string `json:"dataDir,omitempty"`
	RuntimeDir string `json:"runtimeDir,omitempty"`
	// Shares are the folders that the guest can mount.
	Shares []runnerconfig.Share `json:"shares,omitempty"`
	// Sockets are by purpose, see [State.Socket]. The console is served by the runner and takes any
	// number of clients.
	Sockets map[string]string `json:"sockets,omitempty"`
	// Paused reports that the guest does not execute although QEMU runs: it was paused, or stopped
	// because of an error, or QEMU does not answer. The condition GuestExecuting has the reason.
	Paused bool `json:"paused,omitempty"`
	// ConfigGeneration counts the configurations that the running machine was given; the conditions
	// are about the last one.
	ConfigGeneration int `json:"configGeneration,omitempty"`
	// MachineUID is that of the configuration, see [runnerconfig.Runner].
	MachineUID string `json:"-"`
	// Unlocked reports that the engine does not hold the locks of the machine's directories:
	// another engine may report on them.
	Unlocked bool `json:"-"`
	// Conditions report how far the running machine is as configured.
	Conditions []live.Condition `json:"conditions,omitempty"`
	// Generation is that of the manifest of the machine's present configuration; 0 if generations
	// are not counted.
	Generation int64 `json:"generation,omitempty"`
	// StatusConditions are VM-Operator's five conditions, in their order.
	StatusConditions []live.StatusCondition `json:"statusConditions,omitempty"`
	// Guest is the guest agent's report, and Login the VMOP agent's.
	Guest Guest `json:"guest,omitzero"`
	Login Login `json:"login,omitzero"`
	// ConsoleClient has the hosts of the display's clients, "unix" for one on a UNIX socket; empty
	// if there is none. ConsoleClients has all clients.
	ConsoleClient  string        `json:"consoleClient,omitempty"`
	ConsoleClients []live.Client `json:"consoleClients,omitempty"`
	// DisplayPasswordSerial counts how often the display's password was set; -1
	// means that the display has none.
	DisplayPasswordSerial int64 `json:"displayPasswordSerial,omitempty"`
	// PowerdownTimeout is in seconds.
	PowerdownTimeout int64 `json:"powerdownTimeout,omitempty"`
	// Attachments are the disks that other pods export, and AttachmentKey is the fingerprint by
	// which their exporters authenticate this run of the machine; empty before the first
	// attachment.
	Attachments   []live.Attachment `json:"attachments,omitempty"`
	AttachmentKey string            `json:"attachmentKey,omitempty"`
	// Disks are the sizes of the disks that have one to grow to.
	Disks []live.DiskSize `json:"disks,omitempty"`
	// GuestPanics is the number of panics that the guest has reported since the machine was
	// started; it is kept after the end.
	GuestPanics int `json:"guestPanics,omitempty"`
	// ChangedDocuments are the documents of Secrets that differ from those at the machine's start.
	ChangedDocuments []live.Document `json:"changedDocuments,omitempty"`
	// Outcome is how the machine ended; nil before.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Emulation is why a machine runs in software emulation: a reason of the condition
// [conditions.Accelerated], and a message for people.
type Emulation struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Guest is the QEMU guest agent's report. Unknown fields are empty.
type Guest struct {
	// AgentConnected reports whether the guest has the agent's port open.
	AgentConnected bool `json:"agentConnected,omitempty"`
	// Booted reports whether the agent has answered since the last reset.
	Booted bool `json:"booted,omitempty"`
	// OSInfo has the known members of the answer to guest-get-osinfo, a JSON object of printable
	// strings.
	OSInfo   json.RawMessage `json:"osinfo,omitempty"`
	HostName string          `json:"hostName,omitempty"`
	// Interfaces are from the last query of the agent, including the loopback; see live.Inquiry for
	// when that is.
	Interfaces []GuestInterface `json:"interfaces,omitempty"`
	// Problem is what the agent did not answer, and why.
	Problem string `json:"problem,omitempty"`
}

// GuestInterface is a network interface as the guest sees it.
type GuestInterface struct {
	Name string `json:"name"`
	MAC  string `json:"mac,omitempty"`
	// Addresses are in CIDR notation.
	Addresses []string `json:"addresses,omitempty"`
}

// Login is the VMOP agent's report.
type Login struct {
	AgentConnected bool `json:"agentConnected,omitempty"`
	// Wanted is the user to be logged in, User the one whom the agent has confirmed.
	Wanted string `json:"wanted,omitempty"`
	User   string `json:"user,omitempty"`
	// Reason is the reason of the condition UserLoggedIn.
	Reason string `json:"reason,omitempty"`
	// Message is what went wrong; empty if nothing did.
	Message string `json:"message,omitempty"`
}

// Socket returns the path of the socket for a purpose, "" if there is none.
func (s State) Socket(purpose qemucmd.SocketPurpose) string { return s.Sockets[string(purpose)] }

func (s State) clone() State {
	sockets := make(map[string]string, len(s.Sockets))
	for k, v := range s.Sockets {
		sockets[k] = v
	}
	s.Sockets = sockets
	s.Conditions = slices.Clone(s.Conditions)
	s.StatusConditions = slices.Clone(s.StatusConditions)
	s.ConsoleClients = slices.Clone(s.ConsoleClients)
	s.Guest = s.Guest.clone()
	s.DeviceGroups = slices.Clone(s.DeviceGroups)
	s.Attachments = slices.Clone(s.Attachments)
	s.Disks = slices.Clone(s.Disks)
	return s
}

func (g Guest) clone() Guest {
	g.OSInfo = slices.Clone(g.OSInfo)
	g.Interfaces = slices.Clone(g.Interfaces)
	return g
}

func (s *State) facts() live.Facts {
	f := live.Facts{
		Message: s.Message, Paused: s.Paused, Booted: s.Guest.Booted, Clients: s.ConsoleClients, Generation: s.Generation,
		Login: live.Login{
			Connected: s.Login.AgentConnected, Wanted: s.Login.Wanted, Message: s.Login.Message,
			Confirmed: s.Login.Wanted != "" && s.Login.Reason == live.ReasonLoggedIn,
		},
	}
	switch s.Phase {
	case PhaseBooting:
		f.Stage = live.StageRunning
	case PhaseTerminating:
		f.Stage = live.StageTerminating
	case PhaseStopped:
		f.Stage = live.StageStopped
	default:
		f.Stage = live.StageStarting
	}
	return f
}
