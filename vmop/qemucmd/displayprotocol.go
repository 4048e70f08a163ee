package qemucmd

import (
	"github.com/vmop/sdk/vmop/limits"
)

// DisplayProtocol is a way to a machine's graphics output, by the name that QEMU
// gives it in set_password.
type DisplayProtocol string

// The protocols of displays.
const (
	SPICEProtocol DisplayProtocol = "spice"
	VNCProtocol   DisplayProtocol = "vnc"
)

// Row is what is known of a protocol before there is a machine; the zero value of an
// unknown one.
func (p DisplayProtocol) Row() limits.DisplayProtocol { return limits.Display(string(p)) }

// PasswordBytes is how much of a password the protocol compares; 0 is all.
func (p DisplayProtocol) PasswordBytes() int { return p.Row().PasswordBytes }

// Socket is the purpose of the UNIX socket of its server.
func (p DisplayProtocol) Socket() SocketPurpose { return SocketPurpose(p) }
