package qmp

// QueryChardev queries the character devices.
type QueryChardev struct{}

// QMP implements Command.
func (QueryChardev) QMP() (string, []ChardevInfo) { return "query-chardev", nil }

// ChardevInfo describes a character device.
type ChardevInfo struct {
	Label        string `json:"label"`         // its id
	Filename     string `json:"filename"`      // what it is connected to, in words
	FrontendOpen bool   `json:"frontend-open"` // for virtio-serial: the guest has opened the port
}

// QueryIOThreads queries the iothread objects.
type QueryIOThreads struct{}

// QMP implements Command.
func (QueryIOThreads) QMP() (string, []IOThreadInfo) { return "query-iothreads", nil }

// IOThreadInfo describes an iothread.
type IOThreadInfo struct {
	ID          string `json:"id"`
	ThreadID    int    `json:"thread-id"`   // of the host's thread, for pinning
	PollMaxNS   int64  `json:"poll-max-ns"` // longest busy polling, in nanoseconds; 0 for none
	PollGrow    int64  `json:"poll-grow"`
	PollShrink  int64  `json:"poll-shrink"`
	AIOMaxBatch int64  `json:"aio-max-batch"` // 0 for QEMU's choice
}

// QueryPCI queries the devices on the PCI buses, as the guest has configured them.
type QueryPCI struct{}

// QMP implements Command.
func (QueryPCI) QMP() (string, []PCIBus) { return "query-pci", nil }

// PCIBus is a PCI bus with its devices.
type PCIBus struct {
	Bus     int         `json:"bus"`
	Devices []PCIDevice `json:"devices"`
}

// PCIDevice is a function of a PCI device.
type PCIDevice struct {
	Bus      int         `json:"bus"`
	Slot     int         `json:"slot"`
	Function int         `json:"function"`
	Class    PCIClass    `json:"class_info"`
	ID       PCIID       `json:"id"`
	IRQ      *int        `json:"irq"`     // nil without an interrupt pin
	IRQPin   int         `json:"irq_pin"` // 0 for none
	QDevID   string      `json:"qdev_id"` // id of the device, empty if it has none
	Bridge   *PCIBridge  `json:"pci_bridge"`
	Regions  []PCIRegion `json:"regions"`
}

// PCIClass is the class code of a PCI device.
type PCIClass struct {
	Desc  string `json:"desc"` // empty if QEMU has no description of it
	Class int    `json:"class"`
}

// PCIID are the identifiers of a PCI device.
type PCIID struct {
	Device          int `json:"device"`
	Vendor          int `json:"vendor"`
	Subsystem       int `json:"subsystem"`
	SubsystemVendor int `json:"subsystem-vendor"`
}

// PCIBridge are the additional properties of a bridge.
type PCIBridge struct {
	Bus     PCIBridgeBus `json:"bus"`
	Devices []PCIDevice  `json:"devices"` // behind the bridge
}

// PCIBridgeBus are the bus numbers of a bridge; 0 until the guest's firmware has assigned them.
type PCIBridgeBus struct {
	Number      int `json:"number"` // of the bus that the bridge is on
	Secondary   int `json:"secondary"`
	Subordinate int `json:"subordinate"`
}

// PCIRegion is a base address register.
type PCIRegion struct {
	BAR     int    `json:"bar"`
	Type    string `json:"type"`    // "io" or "memory"
	Address int64  `json:"address"` // -1 if not mapped
	Size    int64  `json:"size"`    // bytes
}

// QueryTPM queries the TPM devices.
type QueryTPM struct{}

// QMP implements Command.
func (QueryTPM) QMP() (string, []TPMInfo) { return "query-tpm", nil }

// TPMInfo describes a TPM device.
type TPMInfo struct {
	ID      string     `json:"id"`
	Model   string     `json:"model"` // "tpm-tis", "tpm-crb", ...
	Options TPMOptions `json:"options"`
}

// TPMOptions describe the backend of a TPM.
type TPMOptions struct {
	Type string         `json:"type"` // "emulator" or "passthrough"
	Data TPMBackendData `json:"data"`
}

// TPMBackendData is the union of the data of all types of backends.
type TPMBackendData struct {
	Chardev    string `json:"chardev"`     // emulator
	Path       string `json:"path"`        // passthrough
	CancelPath string `json:"cancel-path"` // passthrough
}
