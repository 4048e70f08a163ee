package qmp

// ShutdownCause is why a machine shuts down or resets (ShutdownCause in qapi/run-state.json). Newer
// versions may have others.
type ShutdownCause string

// The causes of QEMU 7.2.
const (
	CauseNone            ShutdownCause = "none"
	CauseHostError       ShutdownCause = "host-error"
	CauseHostQuit        ShutdownCause = "host-qmp-quit"         // the quit command
	CauseHostReset       ShutdownCause = "host-qmp-system-reset" // the system_reset command
	CauseHostSignal      ShutdownCause = "host-signal"           // such as SIGTERM
	CauseHostUI          ShutdownCause = "host-ui"               // a closed window
	CauseGuestShutdown   ShutdownCause = "guest-shutdown"
	CauseGuestReset      ShutdownCause = "guest-reset" // with -no-reboot or [SetAction], a reset shuts down
	CauseGuestPanic      ShutdownCause = "guest-panic"
	CauseSubsystemReset  ShutdownCause = "subsystem-reset"
	CauseSnapshotLoading ShutdownCause = "snapshot-load"
)

// ShutdownEvent is emitted when the machine shuts down. QEMU then exits, unless it runs with
// -no-shutdown.
type ShutdownEvent struct {
	Guest  bool          `json:"guest"` // caused by the guest
	Reason ShutdownCause `json:"reason"`
}

// QMPEvent implements EventData.
func (ShutdownEvent) QMPEvent() string { return "SHUTDOWN" }

// ResetEvent is emitted when the machine was reset.
type ResetEvent struct {
	Guest  bool          `json:"guest"` // caused by the guest
	Reason ShutdownCause `json:"reason"`
}

// QMPEvent implements EventData.
func (ResetEvent) QMPEvent() string { return "RESET" }

// PowerdownEvent is emitted when the guest was asked to power off.
type PowerdownEvent struct{}

// QMPEvent implements EventData.
func (PowerdownEvent) QMPEvent() string { return "POWERDOWN" }

// StopEvent is emitted when the virtual CPUs were paused.
type StopEvent struct{}

// QMPEvent implements EventData.
func (StopEvent) QMPEvent() string { return "STOP" }

// ResumeEvent is emitted when the virtual CPUs run again.
type ResumeEvent struct{}

// QMPEvent implements EventData.
func (ResumeEvent) QMPEvent() string { return "RESUME" }

// SuspendEvent is emitted when the guest has suspended itself.
type SuspendEvent struct{}

// QMPEvent implements EventData.
func (SuspendEvent) QMPEvent() string { return "SUSPEND" }

// WakeupEvent is emitted when a suspended guest runs again.
type WakeupEvent struct{}

// QMPEvent implements EventData.
func (WakeupEvent) QMPEvent() string { return "WAKEUP" }

// GuestPanickedEvent is emitted when the guest's kernel has reported a panic.
type GuestPanickedEvent struct {
	Action string      `json:"action"` // "pause", "poweroff" or "run"
	Info   *GuestPanic `json:"info"`   // nil if the guest gave none
}

// QMPEvent implements EventData.
func (GuestPanickedEvent) QMPEvent() string { return "GUEST_PANICKED" }

// GuestCrashLoadedEvent is emitted when the guest's kernel has reported a panic and starts another
// kernel to write a dump (kdump).
type GuestCrashLoadedEvent struct {
	Action string      `json:"action"` // "run"
	Info   *GuestPanic `json:"info"`   // nil if the guest gave none
}

// QMPEvent implements EventData.
func (GuestCrashLoadedEvent) QMPEvent() string { return "GUEST_CRASHLOADED" }

// GuestPanic is a guest's report about its panic. The arguments are those of a Hyper-V crash (a
// Windows stop code and its parameters).
type GuestPanic struct {
	Type string `json:"type"` // "hyper-v" or "s390"
	Arg1 uint64 `json:"arg1"`
	Arg2 uint64 `json:"arg2"`
	Arg3 uint64 `json:"arg3"`
	Arg4 uint64 `json:"arg4"`
	Arg5 uint64 `json:"arg5"`
}

// WatchdogEvent is emitted when the guest has not served its watchdog in time.
type WatchdogEvent struct {
	Action string `json:"action"` // what was done: "reset", "shutdown", "poweroff", "pause", "debug", "none", "inject-nmi"
}

// QMPEvent implements EventData.
func (WatchdogEvent) QMPEvent() string { return "WATCHDOG" }
