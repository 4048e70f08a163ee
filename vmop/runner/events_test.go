package runner

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Events that QEMU does not produce on demand are told, and remembered for the
// judgement of the end.
func TestEventsAreTold(t *testing.T) {
	for _, tt := range []struct {
		name, data, want string
		panicked         bool
		looked           int
	}{
		{"GUEST_PANICKED", `{"action":"pause"}`, "the guest panicked, action pause", true, 1},
		{"GUEST_PANICKED", `{"action":"run","info":{"type":"hyper-v","arg1":239,"arg2":1,"arg3":2,"arg4":3,"arg5":4}}`, "stop code 0xef (0x1, 0x2, 0x3, 0x4)", true, 1},
		{"GUEST_PANICKED", `{"action":"poweroff"}`, "the guest panicked, action poweroff", true, 0}, // QEMU is not disturbed
		{"GUEST_CRASHLOADED", `{"action":"run"}`, "the guest panicked, and its crash kernel writes a dump", true, 1},
		{"WATCHDOG", `{"action":"reset"}`, "not served its watchdog, action reset", true, 1},
		{"BLOCK_IO_ERROR", `{"device":"","node-name":"drive-0-backend","operation":"write","action":"stop","nospace":true,"reason":"No space left on device"}`, "disk error: write of drive-0-backend: No space left on device, action stop", true, 1},
		{"RESET", `{"guest":true,"reason":"guest-reset"}`, "the machine was reset (guest-reset)", false, 1},
	} {
		log := &recorder{t: t}
		c := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "test"}}}
		runnerconfig.Default(&c)
		e, err := New(Options{Config: c, Directories: Directories{Data: "/d", Runtime: "/r"}, Reporter: log})
		if err != nil {
			t.Fatal(err)
		}
		panic := strings.HasPrefix(tt.name, "GUEST_")
		e.end.panicked = !panic
		e.enter(PhaseBooting, "")
		log.messages = nil
		if err := e.happened(qmp.Event{Name: tt.name, Data: json.RawMessage(tt.data)}); err != nil {
			t.Error(err)
		}
		if len(log.messages) != 1 || !strings.Contains(log.messages[0], tt.want) {
			t.Errorf("%s %s: %q", tt.name, tt.data, log.messages)
		}
		if n := e.State().GuestPanics; n > 0 != panic || n > 1 {
			t.Errorf("%s: %d panics", tt.name, n)
		}
		if e.end.panicked != tt.panicked || len(e.wake) != tt.looked {
			t.Errorf("%s: panicked %v, looked at %d times", tt.name, e.end.panicked, len(e.wake))
		}
		if err := e.happened(qmp.Event{Name: tt.name, Data: json.RawMessage(`[]`)}); err == nil {
			t.Errorf("%s without data is no error", tt.name)
		}
	}
}
