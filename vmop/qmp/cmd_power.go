package qmp

// SystemReset resets the machine at once, like its reset button. A RESET event follows.
type SystemReset struct{}

// QMP implements Command.
func (SystemReset) QMP() (string, None) { return "system_reset", None{} }

// RebootAction is QEMU's action when the machine is reset (RebootAction in qapi/run-state.json).
type RebootAction string

// The actions.
const (
	// RebootReset resets the machine. It is QEMU's default.
	RebootReset RebootAction = "reset"
	// RebootShutdown ends QEMU. The SHUTDOWN event has the cause of the reset as its reason.
	RebootShutdown RebootAction = "shutdown"
)

// SetAction sets QEMU's action when the machine is reset, by the guest or by SystemReset; a reset
// requested earlier keeps the action of that time. The current action cannot be queried. It exists
// since QEMU 6.0.
type SetAction struct {
	Reboot RebootAction `json:"reboot,omitempty"`
}

// QMP implements Command.
func (SetAction) QMP() (string, None) { return "set-action", None{} }

// SystemPowerdown asks the guest to power off, like its power button. The guest may ignore it: only
// a SHUTDOWN event confirms it, so bound the wait for that event.
type SystemPowerdown struct{}

// QMP implements Command.
func (SystemPowerdown) QMP() (string, None) { return "system_powerdown", None{} }

// SystemWakeup wakes a guest that has suspended itself.
type SystemWakeup struct{}

// QMP implements Command.
func (SystemWakeup) QMP() (string, None) { return "system_wakeup", None{} }

// SendKey presses keys of the guest's keyboard together and releases them after 100 ms
// (qapi/ui.json).
type SendKey struct {
	Keys []KeyValue `json:"keys"`
}

// QMP implements Command.
func (c SendKey) QMP() (string, None) { return "send-key", None{} }

// KeyValue is a key by its name, one of QKeyCode.
type KeyValue struct {
	Type string `json:"type"` // KeyQCode
	Data string `json:"data"`
}

// KeyQCode is the type of a [KeyValue] that is a key name.
const KeyQCode = "qcode"

// Stop pauses the virtual CPUs.
type Stop struct{}

// QMP implements Command.
func (Stop) QMP() (string, None) { return "stop", None{} }

// Cont starts or continues the virtual CPUs.
type Cont struct{}

// QMP implements Command.
func (Cont) QMP() (string, None) { return "cont", None{} }

// Quit ends QEMU at once. The connection may be lost before the reply is read.
type Quit struct{}

// QMP implements Command.
func (Quit) QMP() (string, None) { return "quit", None{} }

// InjectNMI sends a non-maskable interrupt to the guest, on which many guests write a crash dump.
type InjectNMI struct{}

// QMP implements Command.
func (InjectNMI) QMP() (string, None) { return "inject-nmi", None{} }
