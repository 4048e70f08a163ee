package qemucmd

import (
	"fmt"
)

// Host is what a machine's command line may depend on besides the machine: the
// QEMU binary and what it offers. A probe fills it, or a file; see
// [GenericHost] for the one that stands for "no particular host".
type Host struct {
	// QEMU is the path of the qemu-system executable.
	QEMU    string  `json:"qemu"`
	Version Version `json:"version"`
	// MachineTypes lists the q35 and pc types that QEMU offers.
	MachineTypes []MachineType `json:"machineTypes"`
	// KVM is true if a KVM guest was seen to execute on this host. A /dev/kvm that opens is no
	// proof.
	KVM bool `json:"kvm"`
	// Firmware lists the UEFI images found, best first.
	Firmware []FirmwareImage `json:"firmware,omitempty"`
	// Devices are the names of the device models that QEMU offers, sorted.
	Devices []string `json:"devices"`
	// BlockDrivers are the names of the block drivers that QEMU offers, of those
	// that a command of this package can contain: file, host_device, http, https,
	// qcow2, raw. Http and https are missing where the curl module is not
	// installed.
	BlockDrivers []string `json:"blockDrivers"`
	// SPICE is true if QEMU was built with SPICE, or has its module installed.
	SPICE bool `json:"spice"`
	// VNC is true if QEMU was built with VNC.
	VNC bool `json:"vnc"`
	// JSONDevice is true if -device takes JSON whose devices can be unplugged (the feature
	// json-cli-hotplug of device_add).
	JSONDevice bool `json:"jsonDevice"`
	// SWTPM is the path of the TPM emulator, "" if there is none.
	SWTPM string `json:"swtpm,omitempty"`
	// VirtioFSD is the server of shared folders.
	VirtioFSD VirtioFSD `json:"virtiofsd,omitzero"`
	// BridgeHelper is the path of qemu-bridge-helper, "" if there is none.
	BridgeHelper string `json:"bridgeHelper,omitempty"`
}

// displays are the fields of the servers of displays that a QEMU may lack.
func (h *Host) displays() map[DisplayProtocol]*bool {
	if h == nil {
		return nil
	}
	return map[DisplayProtocol]*bool{SPICEProtocol: &h.SPICE, VNCProtocol: &h.VNC}
}

// Serves reports whether QEMU has the server of a protocol.
func (h *Host) Serves(p DisplayProtocol) bool {
	has := h.displays()[p]
	return has == nil || *has
}

// SetServes sets whether QEMU has the server of a protocol, where it may lack it.
func (h *Host) SetServes(p DisplayProtocol, has bool) {
	if field := h.displays()[p]; field != nil {
		*field = has
	}
}

// VirtioFSD is a program that serves folders to guests, and what it can do here.
type VirtioFSD struct {
	// Path is that of the program, "" if there is none.
	Path string `json:"path,omitempty"`
	// Former is the one that came with QEMU up to 7.2. It can only be run by root, and has no
	// read-only shares.
	Former bool `json:"former,omitempty"`
	// ReadOnly is true if it can refuse all writes (from its version 1.13 on).
	ReadOnly bool `json:"readOnly,omitempty"`
	// Root is true if it is run by root.
	Root bool `json:"root,omitempty"`
	// Namespaces is true if it can make the namespaces in which it sees nothing but the folder.
	Namespaces bool `json:"namespaces,omitempty"`
}

// Version is QEMU's version.
type Version struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
	Micro int `json:"micro"`
}

// MachineType is one of QEMU's machine types.
type MachineType struct {
	// Name is versioned ("pc-q35-7.2"), Alias is the short name that stands for
	// the newest of its family ("q35").
	Name  string `json:"name"`
	Alias string `json:"alias,omitempty"`
	// MaxCPUs is the largest -smp maxcpus that it takes.
	MaxCPUs int `json:"maxCPUs,omitempty"`
	// Deprecated types still start, and will be gone in a later QEMU.
	Deprecated bool `json:"deprecated,omitempty"`
}

// FirmwareImage is a pair of UEFI code and variables.
type FirmwareImage struct {
	// Secure images have Secure Boot enforced: code built with SMM and
	// variables with enrolled keys.
	Secure bool `json:"secure,omitempty"`
	// FourMiB images have the 4 MiB flash layout (the other is 2 MiB).
	FourMiB bool   `json:"fourMiB,omitempty"`
	Code    string `json:"code"`
	Vars    string `json:"vars"`
}

// String returns the version as QEMU writes it.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Micro) }
