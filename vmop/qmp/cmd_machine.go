package qmp

// RunState is QEMU's run state (RunState in qapi/run-state.json). Newer versions may have others.
type RunState string

// The run states that a machine without migration goes through.
const (
	RunStatePrelaunch     RunState = "prelaunch" // started with -S, not continued yet
	RunStateRunning       RunState = "running"
	RunStatePaused        RunState = "paused"
	RunStateSuspended     RunState = "suspended" // by the guest, ACPI S3
	RunStateShutdown      RunState = "shutdown"  // powered off, with -no-shutdown
	RunStateIOError       RunState = "io-error"
	RunStateInternalError RunState = "internal-error"
	RunStateGuestPanicked RunState = "guest-panicked"
	RunStateWatchdog      RunState = "watchdog"
)

// QueryStatus queries whether the machine runs.
type QueryStatus struct{}

// QMP implements Command.
func (QueryStatus) QMP() (string, Status) { return "query-status", Status{} }

// Status is the result of QueryStatus.
type Status struct {
	Running bool     `json:"running"` // the virtual CPUs run
	Status  RunState `json:"status"`
}

// QueryVersion queries QEMU's version, which the greeting contains too.
type QueryVersion struct{}

// QMP implements Command.
func (QueryVersion) QMP() (string, Version) { return "query-version", Version{} }

// QueryName queries the name given with -name.
type QueryName struct{}

// QMP implements Command.
func (QueryName) QMP() (string, NameInfo) { return "query-name", NameInfo{} }

// NameInfo is the result of QueryName.
type NameInfo struct {
	Name string `json:"name"` // empty if none was given
}

// QueryUUID queries the machine's UUID.
type QueryUUID struct{}

// QMP implements Command.
func (QueryUUID) QMP() (string, UUIDInfo) { return "query-uuid", UUIDInfo{} }

// UUIDInfo is the result of QueryUUID.
type UUIDInfo struct {
	UUID string `json:"UUID"` // all zero if none was given
}

// QueryKVM queries whether hardware virtualization is used.
type QueryKVM struct{}

// QMP implements Command.
func (QueryKVM) QMP() (string, KVMInfo) { return "query-kvm", KVMInfo{} }

// KVMInfo is the result of QueryKVM.
type KVMInfo struct {
	Enabled bool `json:"enabled"` // this machine uses KVM
	Present bool `json:"present"` // this QEMU was built with KVM
}

// QueryTarget queries the architecture that is emulated.
type QueryTarget struct{}

// QMP implements Command.
func (QueryTarget) QMP() (string, TargetInfo) { return "query-target", TargetInfo{} }

// TargetInfo is the result of QueryTarget.
type TargetInfo struct {
	Arch string `json:"arch"` // such as "x86_64" and "aarch64"
}

// QueryMachines queries the machine types that this QEMU has.
type QueryMachines struct{}

// QMP implements Command.
func (QueryMachines) QMP() (string, []MachineInfo) { return "query-machines", nil }

// MachineInfo describes one machine type.
type MachineInfo struct {
	Name             string `json:"name"`               // versioned, such as "pc-q35-7.2"
	Alias            string `json:"alias"`              // such as "q35"; empty if there is none
	IsDefault        bool   `json:"is-default"`         // used when none is named
	CPUMax           int    `json:"cpu-max"`            // most virtual CPUs
	HotpluggableCPUs bool   `json:"hotpluggable-cpus"`  // CPUs can be plugged with device_add
	NumaMemSupported bool   `json:"numa-mem-supported"` // -numa node,mem= is accepted
	Deprecated       bool   `json:"deprecated"`
	DefaultCPUType   string `json:"default-cpu-type"` // QOM type, may be empty
	DefaultRAMID     string `json:"default-ram-id"`   // memory backend id, for machines that can take one
}

// QueryCurrentMachine queries properties of the running machine.
type QueryCurrentMachine struct{}

// QMP implements Command.
func (QueryCurrentMachine) QMP() (string, CurrentMachine) {
	return "query-current-machine", CurrentMachine{}
}

// CurrentMachine is the result of QueryCurrentMachine.
type CurrentMachine struct {
	WakeupSuspendSupport bool `json:"wakeup-suspend-support"` // system_wakeup can end a suspension
}

// QueryCommands queries the names of all commands. Client.Schema returns more, and costs more.
type QueryCommands struct{}

// QMP implements Command.
func (QueryCommands) QMP() (string, []CommandInfo) { return "query-commands", nil }

// CommandInfo names one command.
type CommandInfo struct {
	Name string `json:"name"`
}
