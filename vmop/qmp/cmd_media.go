package qmp

// BlockdevOpenTray opens the tray of a removable drive. If the guest has locked the tray, the
// command succeeds but only sends the guest a request; a DEVICE_TRAY_MOVED event reports that the
// tray opened.
type BlockdevOpenTray struct {
	ID    string `json:"id"`              // of the guest's device
	Force bool   `json:"force,omitempty"` // open it although it is locked
}

// QMP implements Command.
func (BlockdevOpenTray) QMP() (string, None) { return "blockdev-open-tray", None{} }

// BlockdevCloseTray closes the tray of a removable drive.
type BlockdevCloseTray struct {
	ID string `json:"id"` // of the guest's device
}

// QMP implements Command.
func (BlockdevCloseTray) QMP() (string, None) { return "blockdev-close-tray", None{} }

// BlockdevRemoveMedium takes the medium out of an open tray.
type BlockdevRemoveMedium struct {
	ID string `json:"id"` // of the guest's device
}

// QMP implements Command.
func (BlockdevRemoveMedium) QMP() (string, None) { return "blockdev-remove-medium", None{} }

// BlockdevInsertMedium puts a medium into an open, empty tray.
type BlockdevInsertMedium struct {
	ID       string `json:"id"`        // of the guest's device
	NodeName string `json:"node-name"` // the node that becomes the medium
}

// QMP implements Command.
func (BlockdevInsertMedium) QMP() (string, None) { return "blockdev-insert-medium", None{} }

// BlockdevChangeMedium opens the tray, replaces the medium by a file and closes the tray. It is
// refused while the guest has locked the tray, unless forced.
type BlockdevChangeMedium struct {
	ID           string `json:"id"` // of the guest's device
	Filename     string `json:"filename"`
	Format       string `json:"format,omitempty"`         // driver; empty lets QEMU probe, which trusts the content
	Force        bool   `json:"force,omitempty"`          // although the tray is locked (QEMU 7.1)
	ReadOnlyMode string `json:"read-only-mode,omitempty"` // "retain" (default), "read-only" or "read-write"
}

// QMP implements Command.
func (BlockdevChangeMedium) QMP() (string, None) { return "blockdev-change-medium", None{} }
