package qmp

// Balloon asks the guest to shrink or grow to a size. The reply only confirms the request;
// BALLOON_CHANGE events and QueryBalloon report the result. The error is ErrDeviceNotActive on a
// machine without a balloon device.
type Balloon struct {
	Value int64 `json:"value"` // target size in bytes
}

// QMP implements Command.
func (Balloon) QMP() (string, None) { return "balloon", None{} }

// QueryBalloon queries the memory that the balloon leaves to the guest. The error is
// ErrDeviceNotActive on a machine without a balloon device.
type QueryBalloon struct{}

// QMP implements Command.
func (QueryBalloon) QMP() (string, BalloonInfo) { return "query-balloon", BalloonInfo{} }

// BalloonInfo is the result of QueryBalloon.
type BalloonInfo struct {
	Actual int64 `json:"actual"` // bytes
}

// QueryMemorySizeSummary queries the size of the machine's memory.
type QueryMemorySizeSummary struct{}

// QMP implements Command.
func (QueryMemorySizeSummary) QMP() (string, MemorySizeSummary) {
	return "query-memory-size-summary", MemorySizeSummary{}
}

// MemorySizeSummary is the result of QueryMemorySizeSummary, in bytes.
type MemorySizeSummary struct {
	BaseMemory    int64 `json:"base-memory"`    // given with -m
	PluggedMemory int64 `json:"plugged-memory"` // in memory devices
}

// QueryMemoryDevices queries the memory devices: DIMMs, virtio-mem and others.
type QueryMemoryDevices struct{}

// QMP implements Command.
func (QueryMemoryDevices) QMP() (string, []MemoryDevice) { return "query-memory-devices", nil }

// MemoryDevice is one memory device. Which fields of Data are set depends on Type.
type MemoryDevice struct {
	Type string           `json:"type"` // "dimm", "nvdimm", "virtio-pmem", "virtio-mem", "sgx-epc", ...
	Data MemoryDeviceData `json:"data"`
}

// MemoryDeviceData is the union of the data of all types of memory devices. Sizes and addresses are
// in bytes.
type MemoryDeviceData struct {
	ID     string `json:"id"`
	MemDev string `json:"memdev"` // QOM path of the backend
	Size   int64  `json:"size"`   // now visible to the guest
	Node   int    `json:"node"`   // NUMA node; not of virtio-pmem

	Addr         int64 `json:"addr"` // dimm, nvdimm: guest physical address
	Slot         int   `json:"slot"` // dimm, nvdimm
	Hotplugged   bool  `json:"hotplugged"`
	Hotpluggable bool  `json:"hotpluggable"`

	MemAddr       int64 `json:"memaddr"`        // virtio-mem, virtio-pmem, sgx-epc: guest physical address
	RequestedSize int64 `json:"requested-size"` // virtio-mem
	MaxSize       int64 `json:"max-size"`       // virtio-mem
	BlockSize     int64 `json:"block-size"`     // virtio-mem: granularity of sizes
}
