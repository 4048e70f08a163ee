package qmp

// DeviceTrayMovedEvent is emitted when the tray of a removable drive was opened or closed, by the
// guest or by a command.
type DeviceTrayMovedEvent struct {
	Device   string `json:"device"` // name of a -drive; empty with -blockdev
	ID       string `json:"id"`     // id or QOM path of the guest's device
	TrayOpen bool   `json:"tray-open"`
}

// QMPEvent implements EventData.
func (DeviceTrayMovedEvent) QMPEvent() string { return "DEVICE_TRAY_MOVED" }

// BalloonChangeEvent is emitted when the balloon has changed. QEMU sends at most one per second,
// including the last state.
type BalloonChangeEvent struct {
	Actual int64 `json:"actual"` // bytes left to the guest
}

// QMPEvent implements EventData.
func (BalloonChangeEvent) QMPEvent() string { return "BALLOON_CHANGE" }

// VSerPortChangeEvent is emitted when the guest has opened or closed a virtio-serial port, for
// example when an agent starts or ends.
type VSerPortChangeEvent struct {
	ID   string `json:"id"` // of the port's device
	Open bool   `json:"open"`
}

// QMPEvent implements EventData.
func (VSerPortChangeEvent) QMPEvent() string { return "VSERPORT_CHANGE" }

// NICRxFilterChangedEvent is emitted when the guest has changed which frames a network card
// receives, as it does for a new IPv6 address. QEMU sends no other one for the card until a client
// queries the filter (query-rx-filter).
type NICRxFilterChangedEvent struct {
	Name string `json:"name"` // the card's id, empty if it has none
	Path string `json:"path"` // QOM path
}

// QMPEvent implements EventData.
func (NICRxFilterChangedEvent) QMPEvent() string { return "NIC_RX_FILTER_CHANGED" }

// RTCChangeEvent is emitted when the guest has set its clock.
type RTCChangeEvent struct {
	Offset int64 `json:"offset"` // seconds between the clock and that of -rtc base
}

// QMPEvent implements EventData.
func (RTCChangeEvent) QMPEvent() string { return "RTC_CHANGE" }

// DeviceDeletedEvent is emitted when a device was unplugged and deleted, for each device of a tree.
type DeviceDeletedEvent struct {
	Device string `json:"device"` // id, empty if it had none
	Path   string `json:"path"`   // QOM path
}

// QMPEvent implements EventData.
func (DeviceDeletedEvent) QMPEvent() string { return "DEVICE_DELETED" }

// DeviceUnplugGuestErrorEvent is emitted when the guest refused to unplug a device.
type DeviceUnplugGuestErrorEvent struct {
	Device string `json:"device"` // id, empty if it has none
	Path   string `json:"path"`   // QOM path
}

// QMPEvent implements EventData.
func (DeviceUnplugGuestErrorEvent) QMPEvent() string { return "DEVICE_UNPLUG_GUEST_ERROR" }

// MemUnplugErrorEvent is emitted when a DIMM could not be unplugged. From version 6.2 on QEMU sends
// DEVICE_UNPLUG_GUEST_ERROR too, and from 9.1 on that alone.
type MemUnplugErrorEvent struct {
	Device string `json:"device"`
	Msg    string `json:"msg"`
}

// QMPEvent implements EventData.
func (MemUnplugErrorEvent) QMPEvent() string { return "MEM_UNPLUG_ERROR" }

// MemoryDeviceSizeChangeEvent is emitted when the guest has grown or shrunk a virtio-mem device.
// QEMU sends at most one per second and device.
type MemoryDeviceSizeChangeEvent struct {
	ID      string `json:"id"`   // empty if it has none
	Size    int64  `json:"size"` // bytes
	QOMPath string `json:"qom-path"`
}

// QMPEvent implements EventData.
func (MemoryDeviceSizeChangeEvent) QMPEvent() string { return "MEMORY_DEVICE_SIZE_CHANGE" }

// ACPIDeviceOSTEvent carries the guest's ACPI report about a device that is plugged or unplugged.
type ACPIDeviceOSTEvent struct {
	Info ACPIOSTInfo `json:"info"`
}

// QMPEvent implements EventData.
func (ACPIDeviceOSTEvent) QMPEvent() string { return "ACPI_DEVICE_OST" }

// ACPIOSTInfo is an OSPM status report. Source and status are specified by ACPI, "_OST (OSPM Status
// Indication)".
type ACPIOSTInfo struct {
	Device   string `json:"device"` // id, empty if it has none
	Slot     string `json:"slot"`
	SlotType string `json:"slot-type"` // "DIMM" or "CPU"
	Source   int64  `json:"source"`    // 1, 3 or 0x103: insertion, removal request, removal in progress
	Status   int64  `json:"status"`    // 0 is success
}

// BlockIOErrorEvent is emitted when an I/O request of the guest failed.
type BlockIOErrorEvent struct {
	Device    string `json:"device"` // name of a -drive; empty with -blockdev
	NodeName  string `json:"node-name"`
	Operation string `json:"operation"` // "read" or "write"
	Action    string `json:"action"`    // "ignore", "report" or "stop"
	NoSpace   bool   `json:"nospace"`   // the host's storage is full
	Reason    string `json:"reason"`    // human-readable
}

// QMPEvent implements EventData.
func (BlockIOErrorEvent) QMPEvent() string { return "BLOCK_IO_ERROR" }
