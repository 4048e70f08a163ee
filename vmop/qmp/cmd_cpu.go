package qmp

// CPUProps are a CPU's location in the machine, as QEMU's property names and values: "socket-id",
// "die-id", "core-id", "thread-id", "node-id" and others in newer versions. All of them must be
// passed, unchanged, in the DeviceAdd that plugs the CPU.
type CPUProps map[string]int64

// Properties returns them as [DeviceAdd] takes them.
func (p CPUProps) Properties() map[string]any {
	out := make(map[string]any, len(p))
	for name, value := range p {
		out[name] = value
	}
	return out
}

// QueryCPUsFast queries the virtual CPUs that are plugged.
type QueryCPUsFast struct{}

// QMP implements Command.
func (QueryCPUsFast) QMP() (string, []CPUInfo) { return "query-cpus-fast", nil }

// CPUInfo describes one virtual CPU.
type CPUInfo struct {
	CPUIndex int      `json:"cpu-index"`
	QOMPath  string   `json:"qom-path"`  // "/machine/peripheral/ID" if it was plugged with an id
	ThreadID int      `json:"thread-id"` // of the host's thread, for pinning
	Props    CPUProps `json:"props"`
	Target   string   `json:"target"` // architecture
}

// QueryHotpluggableCPUs queries the CPU slots, taken or free.
type QueryHotpluggableCPUs struct{}

// QMP implements Command.
func (QueryHotpluggableCPUs) QMP() (string, []HotpluggableCPU) {
	return "query-hotpluggable-cpus", nil
}

// HotpluggableCPU is a CPU slot.
type HotpluggableCPU struct {
	Type       string   `json:"type"`        // driver for DeviceAdd
	VCPUsCount int      `json:"vcpus-count"` // virtual CPUs that come with it
	Props      CPUProps `json:"props"`
	QOMPath    string   `json:"qom-path"` // empty while the slot is free
}

// QueryJIT queries the statistics of software emulation's translated code. The result is text for
// display and the command unstable, as its name says; other accelerators refuse it.
type QueryJIT struct{}

// QMP implements Command.
func (QueryJIT) QMP() (string, HumanReadableText) { return "x-query-jit", HumanReadableText{} }

// HumanReadableText is a result for display.
type HumanReadableText struct {
	Text string `json:"human-readable-text"`
}

// QueryCPUDefinitions queries the CPU models that this QEMU has.
type QueryCPUDefinitions struct{}

// QMP implements Command.
func (QueryCPUDefinitions) QMP() (string, []CPUDefinition) { return "query-cpu-definitions", nil }

// CPUDefinition describes a CPU model.
type CPUDefinition struct {
	Name                string   `json:"name"`                 // for -cpu
	MigrationSafe       bool     `json:"migration-safe"`       // means the same on each host
	Static              bool     `json:"static"`               // does not depend on the machine type
	UnavailableFeatures []string `json:"unavailable-features"` // what this host lacks for it; empty if it runs
	Typename            string   `json:"typename"`             // QOM type
	AliasOf             string   `json:"alias-of"`
	Deprecated          bool     `json:"deprecated"`
}
