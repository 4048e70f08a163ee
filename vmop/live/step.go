package live

import "strconv"

// Step is one command to a machine. The types below are all there are.
type Step interface {
	// part names the record of attempts that the step belongs to.
	part() string
}

// PlugCPU plugs a processor into a free slot.
type PlugCPU struct {
	ID     string
	Driver string
	Props  map[string]int64
}

// UnplugCPU asks the guest to release a processor. It is a step for machines with
// KVM only, because QEMU's software emulation (TCG) does not survive it:
//
//   - The processor's translation tables are freed, but its listener to the
//     machine's memory map stays, and clears them at each change of the map: the
//     next reset, PCI device or plugged processor ends QEMU 7.2 with "double free
//     or corruption", whatever the CPU model, chipset, SMM and memory backend. QEMU
//     has repaired that in 10.0.5, 10.1.1 and 10.2 (its issue 2517).
//   - The place of the processor's thread in a table of as many as the machine can
//     have processors is not given back: the assertion in tcg_register_thread ends
//     QEMU, 10.0.13 too, when so many have been plugged in all.
//   - With one thread for all processors (thread=single) QEMU 7.2 ends at once.
//
// Seen with QEMU 7.2.22, 10.0.2 and 10.0.13. A guest that ejects a processor of its
// own accord still ends its own machine.
type UnplugCPU struct{ ID string }

// SetBalloon asks the guest to return or take memory until it has this much.
type SetBalloon struct{ Bytes int64 }

// OpenTray opens a tray, or asks the guest to do so if it has locked it.
type OpenTray struct{ ID string }

// ChangeMedium puts another image into a drive and closes the tray.
type ChangeMedium struct {
	ID string
	// File is a path that begins with "/" or "./", or an http or https URL: QEMU takes anything
	// else for the name of a protocol.
	File string
}

// RemoveMedium empties a drive whose tray is open.
type RemoveMedium struct{ ID string }

// GrowDisk enlarges a disk; QEMU notifies the guest.
type GrowDisk struct {
	ID, Node string
	// Bytes is its new size, a multiple of 512.
	Bytes int64
}

// PlugDisk plugs a disk that another pod exports, or that is at a path.
type PlugDisk struct {
	// UID is the attachment's, Serial the guest's name of the disk.
	UID, Serial string
	// Port is its root port, see qemucmd.PortID.
	Port int
	// Path is the image or block device; empty for an exported disk.
	Path string
	// GrowTo is the size in bytes to which a smaller image at Path is enlarged.
	GrowTo int64
}

// UnplugDisk asks the guest to release such a disk.
type UnplugDisk struct{ UID string }

// CloseDisk closes a disk that the guest no longer has, or its connection to its exporter, after
// its writes have reached the storage.
type CloseDisk struct{ Port int }

// PlugUSBDevice plugs a USB device of the host; QEMU waits for one that is missing.
type PlugUSBDevice struct {
	ID string
	// Vendor and Product are its USB ids.
	Vendor, Product uint16
}

// UnplugUSBDevice unplugs one, which needs no consent of the guest.
type UnplugUSBDevice struct{ ID string }

// SetDisplayPassword sets the password with this digest.
type SetDisplayPassword struct {
	// Protocol is "spice" or "vnc".
	Protocol string
	Digest   string
}

// ExpireDisplayPassword sets when the display's password expires.
type ExpireDisplayPassword struct {
	Protocol string
	Time     string
	// For is the digest of the password that the time is for.
	For string
}

// Reset resets the machine.
type Reset struct {
	// Counter is the reset counter that it fulfils.
	Counter int64
}

// SetResetAction sets the effect of later resets of the machine, by the guest or by [Reset].
type SetResetAction struct {
	// Ends is whether a reset ends the machine.
	Ends bool
}

// Cont resumes the guest.
type Cont struct {
	// Request is the number of the fulfilled request; 0 if there was none.
	Request int
}

// Stop pauses the guest.
type Stop struct{ Request int }

func (PlugCPU) part() string                 { return "cpus/plug" }
func (UnplugCPU) part() string               { return "cpus/unplug" }
func (SetBalloon) part() string              { return "ram" }
func (s OpenTray) part() string              { return s.ID + "/open" }
func (s ChangeMedium) part() string          { return s.ID + "/change" }
func (s RemoveMedium) part() string          { return s.ID + "/remove" }
func (s GrowDisk) part() string              { return s.ID + "/grow" }
func (s PlugDisk) part() string              { return s.UID + "/plug" }
func (s UnplugDisk) part() string            { return s.UID + "/unplug" }
func (s CloseDisk) part() string             { return "port " + strconv.Itoa(s.Port) + "/close" }
func (s PlugUSBDevice) part() string         { return s.ID + "/plug" }
func (s UnplugUSBDevice) part() string       { return s.ID + "/unplug" }
func (s SetDisplayPassword) part() string    { return "password/" + s.Protocol }
func (s ExpireDisplayPassword) part() string { return "expiry/" + s.Protocol }
func (Reset) part() string                   { return "reset" }
func (SetResetAction) part() string          { return "reset action" }
func (Cont) part() string                    { return "cont" }
func (Stop) part() string                    { return "stop" }
