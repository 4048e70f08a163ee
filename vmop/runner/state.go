package runner

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
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
	// QuitSignal is whether the runner stops the machine without waiting for the guest when it gets
	// QUIT, see [Engine.TakeQuitSignal].
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
	// CPUs is the number of CPUs plugged, MaximumCPUs of the slots.
	CPUs        int `json:"cpus,omitempty"`
	MaximumCPUs int `json:"maximumCpus,omitempty"`
	// RAM is what the balloon leaves and MaximumRAM all of it, in bytes.
	RAM        int64  `json:"ram,omitempty"`
	MaximumRAM int64  `json:"maximumRam,omitempty"`
	DataDir    string `json:"dataDir,omitempty"`
	RuntimeDir string `json:"runtimeDir,omitempty"`
	// Shares are the folders that the guest can mount.
	Shares []runnerconfig.Share `json:"shares,omitempty"`
	// Sockets by purpose, see [State.Socket]. The console is served by the runner and
	// takes any number of clients.
	Sockets map[string]string `json:"sockets,omitempty"`
	// Paused is whether the guest does not execute although the machine is there: it was paused, or
	// stopped because of an error. The condition GuestExecuting says why.
	Paused bool `json:"paused,omitempty"`
	// ConfigGeneration counts the configurations that the running machine was
	// given; the conditions are about the last one of that number.
	ConfigGeneration int `json:"configGeneration,omitempty"`
	// MachineUID is that of the configuration, see [runnerconfig.Runner].
	MachineUID string `json:"-"`
	// Unlocked says that the engine has not, or not yet, got the machine's directories
	// for itself: what is told of them may be another engine's to tell.
	Unlocked bool `json:"-"`
	// Conditions say how far the running machine is as its configuration says.
	Conditions []live.Condition `json:"conditions,omitempty"`
	// Generation of the manifest that the configuration was made from which the machine follows; 0
	// if generations are not counted.
	Generation int64 `json:"generation,omitempty"`
	// StatusConditions are VM-Operator's five conditions, in their order.
	StatusConditions []live.StatusCondition `json:"statusConditions,omitempty"`
	// Guest is what the guest agent has reported, and Login what the VMOP agent has.
	Guest Guest `json:"guest,omitzero"`
	Login Login `json:"login,omitzero"`
	// ConsoleClient has the hosts of the display's clients, "unix" for one on a
	// UNIX socket; empty if there is none. ConsoleClients has all of them.
	ConsoleClient  string        `json:"consoleClient,omitempty"`
	ConsoleClients []live.Client `json:"consoleClients,omitempty"`
	// DisplayPasswordSerial counts how often the display's password was set; -1
	// means that the display has none.
	DisplayPasswordSerial int64 `json:"displayPasswordSerial,omitempty"`
	// PowerdownTimeout in seconds.
	PowerdownTimeout int64 `json:"powerdownTimeout,omitempty"`
	// Attachments are the disks that other pods export, and AttachmentKey is the
	// fingerprint by which their exporters know this run of the machine; empty as long as
	// there was none.
	Attachments   []live.Attachment `json:"attachments,omitempty"`
	AttachmentKey string            `json:"attachmentKey,omitempty"`
	// Disks are the sizes of the disks that have one to grow to.
	Disks []live.DiskSize `json:"disks,omitempty"`
	// GuestPanics is how often the guest has told that it has panicked since the machine was
	// started, also of a machine that has ended.
	GuestPanics int `json:"guestPanics,omitempty"`
	// ChangedDocuments are the documents of Secrets that are otherwise than those that
	// the guest was given when it was started.
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

// Guest is what the QEMU guest agent has reported. What it has not is empty.
type Guest struct {
	// AgentConnected is whether the guest has the agent's port open.
	AgentConnected bool `json:"agentConnected,omitempty"`
	// Booted is whether the agent has answered since the last reset.
	Booted bool `json:"booted,omitempty"`
	// OSInfo has what is known of the members of the answer to guest-get-osinfo, a
	// JSON object of printable strings.
	OSInfo   json.RawMessage `json:"osinfo,omitempty"`
	HostName string          `json:"hostName,omitempty"`
	// Interfaces are as they were when the agent was asked last, the loopback
	// included; see live.Inquiry for when that is.
	Interfaces []GuestInterface `json:"interfaces,omitempty"`
	// Problem says what the agent did not answer, and why.
	Problem string `json:"problem,omitempty"`
}

// GuestInterface is a network interface as the guest sees it.
type GuestInterface struct {
	Name string `json:"name"`
	MAC  string `json:"mac,omitempty"`
	// Addresses with the lengths of their networks' prefixes.
	Addresses []string `json:"addresses,omitempty"`
}

// Login is what the VMOP agent in the guest has reported.
type Login struct {
	AgentConnected bool `json:"agentConnected,omitempty"`
	// Wanted is the user to be logged in, User the one whom the agent has
	// confirmed to be.
	Wanted string `json:"wanted,omitempty"`
	User   string `json:"user,omitempty"`
	// Reason is that of the condition UserLoggedIn.
	Reason string `json:"reason,omitempty"`
	// Message says what went wrong; empty if nothing did.
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

// facts are what the conditions of a machine are made from.
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
