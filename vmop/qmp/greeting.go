package qmp

import (
	"fmt"
	"slices"
)

// Greeting is the first message of a monitor.
type Greeting struct {
	Version      Version  `json:"version"`
	Capabilities []string `json:"capabilities"` // capabilities on offer, such as "oob"
}

// Offers reports whether the monitor offers the capability.
func (g Greeting) Offers(capability string) bool {
	return slices.Contains(g.Capabilities, capability)
}

func (g Greeting) clone() Greeting {
	g.Capabilities = slices.Clone(g.Capabilities)
	return g
}

// Version is QEMU's version, for display. Use Client.Schema to find out what QEMU supports.
type Version struct {
	QEMU struct {
		Major int `json:"major"`
		Minor int `json:"minor"`
		Micro int `json:"micro"`
	} `json:"qemu"`
	Package string `json:"package"` // the distribution's version, may be empty
}

// String returns the version as QEMU writes it, for example "7.2.22".
func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", v.QEMU.Major, v.QEMU.Minor, v.QEMU.Micro)
}
