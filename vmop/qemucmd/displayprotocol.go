package qemucmd

import (
	"github.com/vmop/sdk/vmop/limits"
)

// DisplayProtocol is a protocol of a machine's graphics output, named as in QMP's set_password.
type DisplayProtocol string

// The protocols of displays.
const (
	SPICEProtocol DisplayProtocol = "spice"
	VNCProtocol   DisplayProtocol = "vnc"
)

// Row returns the static properties of a protocol; the zero value if it is unknown.
func (p DisplayProtocol) Row() limits.DisplayProtocol { return limits.Display(string(p)) }

// PasswordBytes is the number of bytes of a password that the protocol compares; 0 means all.
func (p DisplayProtocol) PasswordBytes() int { return p.Row().PasswordBytes }

// Socket is the purpose of the UNIX socket of the protocol's server.
func (p DisplayProtocol) Socket() SocketPurpose { return SocketPurpose(p) }
