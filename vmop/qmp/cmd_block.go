package qmp

// QueryBlock queries the block devices that the guest sees.
type QueryBlock struct{}

// QMP implements Command.
func (QueryBlock) QMP() (string, []BlockInfo) { return "query-block", nil }

// BlockInfo describes a block device of the guest.
type BlockInfo struct {
	Device    string           `json:"device"` // name of a -drive; empty with -blockdev
	QDev      string           `json:"qdev"`   // id or QOM path of the guest's device, empty if there is none
	Type      string           `json:"type"`   // always "unknown"
	Removable bool             `json:"removable"`
	Locked    bool             `json:"locked"`    // the guest has locked the tray
	TrayOpen  *bool            `json:"tray_open"` // nil for devices without a tray
	IOStatus  string           `json:"io-status"` // "ok", "failed" or "nospace"; empty if not supported
	Inserted  *BlockDeviceInfo `json:"inserted"`  // nil without a medium
}

// QueryNamedBlockNodes queries the nodes of the block graph that have a name.
type QueryNamedBlockNodes struct {
	Flat bool `json:"flat,omitempty"` // leave backing images out, which is much quicker for long chains
}

// QMP implements Command.
func (QueryNamedBlockNodes) QMP() (string, []BlockDeviceInfo) { return "query-named-block-nodes", nil }

// BlockDeviceInfo describes a node of the block graph.
type BlockDeviceInfo struct {
	File             string     `json:"file"` // file name
	NodeName         string     `json:"node-name"`
	ReadOnly         bool       `json:"ro"`
	Driver           string     `json:"drv"` // such as "qcow2"
	BackingFile      string     `json:"backing_file"`
	BackingFileDepth int        `json:"backing_file_depth"`
	Encrypted        bool       `json:"encrypted"`
	DetectZeroes     string     `json:"detect_zeroes"`
	Image            ImageInfo  `json:"image"`
	Cache            BlockCache `json:"cache"`
	WriteThreshold   int64      `json:"write_threshold"` // bytes, 0 if not set
	Group            string     `json:"group"`           // throttle group

	// Throttling limits, 0 for none: bytes and operations per second.
	BPS       int64 `json:"bps"`
	BPSRead   int64 `json:"bps_rd"`
	BPSWrite  int64 `json:"bps_wr"`
	IOPS      int64 `json:"iops"`
	IOPSRead  int64 `json:"iops_rd"`
	IOPSWrite int64 `json:"iops_wr"`
}

// BlockCache are the cache modes of a node.
type BlockCache struct {
	Writeback bool `json:"writeback"`
	Direct    bool `json:"direct"`   // O_DIRECT
	NoFlush   bool `json:"no-flush"` // flushes are ignored: unsafe
}

// ImageInfo describes the image behind a node. Sizes are in bytes.
type ImageInfo struct {
	Filename              string     `json:"filename"`
	Format                string     `json:"format"`
	VirtualSize           int64      `json:"virtual-size"` // what the guest sees
	ActualSize            int64      `json:"actual-size"`  // taken on the host
	ClusterSize           int64      `json:"cluster-size"`
	DirtyFlag             bool       `json:"dirty-flag"` // was not closed cleanly
	BackingFilename       string     `json:"backing-filename"`
	FullBackingFilename   string     `json:"full-backing-filename"`
	BackingFilenameFormat string     `json:"backing-filename-format"`
	BackingImage          *ImageInfo `json:"backing-image"`
}

// QueryBlockStats queries the counters of block devices or nodes.
type QueryBlockStats struct {
	QueryNodes bool `json:"query-nodes,omitempty"` // of all named nodes, rather than of devices
}

// QMP implements Command.
func (QueryBlockStats) QMP() (string, []BlockStats) { return "query-blockstats", nil }

// BlockStats are the counters of one device or node.
type BlockStats struct {
	Device   string           `json:"device"`
	QDev     string           `json:"qdev"`
	NodeName string           `json:"node-name"`
	Stats    BlockDeviceStats `json:"stats"`
}

// BlockDeviceStats are counters since the start of the machine: bytes, operations and nanoseconds.
type BlockDeviceStats struct {
	ReadBytes        int64 `json:"rd_bytes"`
	WriteBytes       int64 `json:"wr_bytes"`
	UnmapBytes       int64 `json:"unmap_bytes"`
	ReadOperations   int64 `json:"rd_operations"`
	WriteOperations  int64 `json:"wr_operations"`
	FlushOperations  int64 `json:"flush_operations"`
	UnmapOperations  int64 `json:"unmap_operations"`
	ReadTotalTime    int64 `json:"rd_total_time_ns"`
	WriteTotalTime   int64 `json:"wr_total_time_ns"`
	FlushTotalTime   int64 `json:"flush_total_time_ns"`
	UnmapTotalTime   int64 `json:"unmap_total_time_ns"`
	FailedReads      int64 `json:"failed_rd_operations"`
	FailedWrites     int64 `json:"failed_wr_operations"`
	FailedFlushes    int64 `json:"failed_flush_operations"`
	FailedUnmaps     int64 `json:"failed_unmap_operations"`
	InvalidReads     int64 `json:"invalid_rd_operations"`
	InvalidWrites    int64 `json:"invalid_wr_operations"`
	InvalidFlushes   int64 `json:"invalid_flush_operations"`
	InvalidUnmaps    int64 `json:"invalid_unmap_operations"`
	WriteHighestByte int64 `json:"wr_highest_offset"` // how far into the image the guest has written
	IdleTime         int64 `json:"idle_time_ns"`      // since the last access
}

// BlockdevAdd adds a node to the block graph. The options depend on the driver and keep their JSON
// types.
type BlockdevAdd struct {
	Driver   string
	NodeName string
	Options  map[string]any // the driver's own, without the above
}

// QMP implements Command.
func (BlockdevAdd) QMP() (string, None) { return "blockdev-add", None{} }

// MarshalJSON encodes the options beside the named fields. It fails if they contain one of these.
func (b BlockdevAdd) MarshalJSON() ([]byte, error) {
	return flat(b.Options, option{"driver", b.Driver}, option{"node-name", b.NodeName})
}

// BlockdevDel removes a node that is not in use.
type BlockdevDel struct {
	NodeName string `json:"node-name"`
}

// QMP implements Command.
func (BlockdevDel) QMP() (string, None) { return "blockdev-del", None{} }

// BlockResize changes the size of a node's image, which the guest notices.
type BlockResize struct {
	NodeName string `json:"node-name"`
	Size     int64  `json:"size"` // bytes
}

// QMP implements Command.
func (BlockResize) QMP() (string, None) { return "block_resize", None{} }
