package qemucmd

import (
	"fmt"
)

// Host is what a command line may depend on besides the machine: the QEMU binary and what it
// offers. See [GenericHost] for one that stands for no particular host.
type Host struct {
	// QEMU is the path of the qemu-system executable.
	QEMU    string  `json:"qemu"`
	Version Version `json:"version"`
	// MachineTypes lists the q35 and pc types that QEMU offers.
	MachineTypes []MachineType `json:"machineTypes"`
	// KVM is true if a KVM guest was seen to execute on this host. That /dev/kvm can be opened is
	// no proof.
	KVM bool `json:"kvm"`
	// Firmware lists the UEFI images found, best first.
	Firmware []FirmwareImage `json:"firmware,omitempty"`
	// Devices are the names of the device models that QEMU offers, sorted.
	Devices []string `json:"devices"`
	// BlockDrivers are those that QEMU offers of the ones that this package uses: file,
	// host_device, http, https, qcow2, raw. Http and https are missing where the curl module is not
	// installed.
	BlockDrivers []string `json:"blockDrivers"`
	// SPICE is true if QEMU was built with SPICE, or has its module installed.
	SPICE bool `json:"spice"`
	// VNC is true if QEMU was built with VNC.
	VNC bool `json:"vnc"`
	// JSONDevice is true if -device takes JSON and such devices can be unplugged (the feature
	// json-cli-hotplug of device_add).
	JSONDevice bool `json:"jsonDevice"`
	// SWTPM is the path of the TPM emulator, "" if there is none.
	SWTPM string `json:"swtpm,omitempty"`
	// VirtioFSD is the server of shared folders.
	VirtioFSD VirtioFSD `json:"virtiofsd,omitzero"`
	// BridgeHelper is the path of qemu-bridge-helper, "" if there is none.
	BridgeHelper string `json:"bridgeHelper,omitempty"`
}

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

// SetServes sets whether QEMU has the server of a protocol that it may lack.
func (h *Host) SetServes(p DisplayProtocol, has bool) {
	if field := h.displays()[p]; field != nil {
		*field = has
	}
}

// VirtioFSD is a program that serves folders to guests, and its abilities on this host.
type VirtioFSD struct {
	// Path is the program's path, "" if it is not installed.
	Path string `json:"path,omitempty"`
	// Former is true for the one that came with QEMU up to 7.2, which only root can run and which
	// has no read-only shares.
	Former bool `json:"former,omitempty"`
	// ReadOnly is true if it can refuse all writes (since its version 1.13).
	ReadOnly bool `json:"readOnly,omitempty"`
	// Root is true if it is run by root.
	Root bool `json:"root,omitempty"`
	// Namespaces is true if it can create the namespaces that confine it to the folder.
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
	// Name is versioned ("pc-q35-7.2"); Alias is the short name for the newest of its family
	// ("q35").
	Name  string `json:"name"`
	Alias string `json:"alias,omitempty"`
	// MaxCPUs is the largest -smp maxcpus that it accepts.
	MaxCPUs int `json:"maxCPUs,omitempty"`
	// Deprecated types still start, but a later QEMU will not have them.
	Deprecated bool `json:"deprecated,omitempty"`
}

// FirmwareImage is a pair of UEFI code and variables.
type FirmwareImage struct {
	// Secure images enforce Secure Boot: code built with SMM, and variables with enrolled keys.
	Secure bool `json:"secure,omitempty"`
	// FourMiB images have the 4 MiB flash layout, others that of 2 MiB.
	FourMiB bool   `json:"fourMiB,omitempty"`
	Code    string `json:"code"`
	Vars    string `json:"vars"`
}

// String returns the version as QEMU writes it.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Micro) }
