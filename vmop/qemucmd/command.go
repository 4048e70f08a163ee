package qemucmd

// Command is a QEMU command line and what must exist before it runs.
type Command struct {
	// Executable is the path of QEMU.
	Executable string `json:"executable"`
	// Groups are the arguments, grouped by part of the machine.
	Groups []Group `json:"-"`
	// Files must exist before QEMU starts.
	Files []File `json:"files,omitempty"`
	// Sockets are those that QEMU listens on, and those of its helpers.
	Sockets []NamedSocket `json:"sockets,omitempty"`
	// Helpers must run, and listen, before QEMU starts.
	Helpers []Helper `json:"helpers,omitempty"`
	// MachineType is the versioned type that was chosen. The caller records it, to keep the guest's
	// hardware stable when QEMU is upgraded.
	MachineType string `json:"machineType"`
	// Accelerator is the one chosen, never [AcceleratorAuto].
	Accelerator Accelerator `json:"accelerator"`
	// Warnings are for display: what a later QEMU will not support.
	Warnings []string `json:"warnings,omitempty"`
}

// Group is a part of the command line.
type Group struct {
	// Name is stable; templates refer to the group by it.
	Name    string
	Options []Option
}

// FilePurpose is what a file of a command is used for.
type FilePurpose string

// The purposes of the files in a [Command].
const (
	FileFirmwareCode FilePurpose = "firmware-code"
	FileFirmwareVars FilePurpose = "firmware-vars"
	FileKernel       FilePurpose = "kernel"
	FileInitrd       FilePurpose = "initrd"
	FileDisk         FilePurpose = "disk"
	FileCD           FilePurpose = "cd"
	FileSeed         FilePurpose = "seed"
	FileAnswerCD     FilePurpose = "answer-cd"
	FileDisplayTLS   FilePurpose = "display-tls"
	// FileShare is a directory.
	FileShare FilePurpose = "share"
)

// File is a file or device that QEMU opens.
type File struct {
	Purpose FilePurpose `json:"purpose"`
	Path    string      `json:"path"`
	// CopyFrom is the file to copy to Path if, and only if, Path does not exist.
	CopyFrom string `json:"copyFrom,omitempty"`
	Writable bool   `json:"writable,omitempty"`
	// OpenedAs is QEMU's name for a file that it gets as a descriptor: QEMU's messages and QMP
	// replies contain it in place of Path.
	OpenedAs string `json:"openedAs,omitempty"`
}

// SocketPurpose is the protocol or use of a socket.
type SocketPurpose string

// The purposes of the sockets in a [Command].
const (
	SocketMonitor     SocketPurpose = "monitor"
	SocketToolMonitor SocketPurpose = "tool-monitor"
	SocketSerial      SocketPurpose = "serial"
	SocketGuestAgent  SocketPurpose = "guest-agent"
	SocketVMOPAgent   SocketPurpose = "vmop-agent"
	SocketSPICE       SocketPurpose = "spice"
	SocketVNC         SocketPurpose = "vnc"
	SocketTPM         SocketPurpose = "tpm"
	// SocketShare occurs once per virtiofs share, in the shares' order.
	SocketShare SocketPurpose = "share"
	// SocketConsole is in no command: on it, the supervisor serves any number of viewers of the one
	// serial port.
	SocketConsole SocketPurpose = "console"
)

// NamedSocket is a socket with its purpose.
type NamedSocket struct {
	Purpose SocketPurpose `json:"purpose"`
	Socket
}

// Helper is a process that QEMU needs beside it.
type Helper struct {
	// Name is "swtpm" or "virtiofsd".
	Name string `json:"name"`
	// Serves is the tag of the share that it serves; "" for the whole machine.
	Serves string `json:"serves,omitempty"`
	// Executable and Args are its command line, not for a shell.
	Executable string   `json:"executable"`
	Args       []string `json:"args"`
	// Socket is where it listens when it is ready.
	Socket string `json:"socket"`
	// StateDir must exist before it starts; "" if it has no state.
	StateDir string `json:"stateDir,omitempty"`
	// Dispensable helpers may exit while the machine runs on without what they serve.
	Dispensable bool `json:"dispensable,omitempty"`
}
