package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/live"
)

// A machine that runs under a former runner says with the words of today what waits for a
// restart.
func TestStateOfAFormerRunner(t *testing.T) {
	for text, want := range map[string]live.Condition{
		`"RestartRequired","status":"True","reason":"ChangesWait","message":"vm.maximumRam"`: {
			Type: conditions.AwaitingRestart, Status: live.True, Reason: conditions.ReasonChangesPendingRestart, Message: "vm.maximumRam",
		},
		`"RestartRequired","status":"False","reason":"UpToDate"`: {Type: conditions.AwaitingRestart, Status: live.False, Reason: conditions.ReasonNoRestartRequired},
		`"CPUsAdjusted","status":"False","reason":"ChangesWait"`: {Type: conditions.CPUsAdjusted, Status: live.False, Reason: conditions.ReasonChangesWait},
	} {
		file := filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(file, []byte(`{"conditions":[{"type":`+text+`}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := ReadState(file); err != nil || len(s.Conditions) != 1 || s.Conditions[0] != want {
			t.Errorf("%s: %+v, %v", text, s.Conditions, err)
		}
	}
}

// What is no file is refused, and not waited for.
func TestStateThatIsNoFile(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "state.json")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, t.TempDir()} {
		if _, err := ReadState(path); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
