package runner

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// However a machine is stopped without its guest's consent, QEMU is told to quit, and writes
// back what it keeps of its disks: what the guest has written is in the image, also where
// it has not asked for that, as a database does before it acknowledges. Of an image of
// qcow2 QEMU keeps in memory where what was written is.
func TestForcedStopFlushesTheDisks(t *testing.T) {
	const word = "written by the guest"
	for how, tt := range map[string]struct {
		timeout int64
		stop    func(t *testing.T, r *running)
	}{
		"the guest's time is over":  {2, func(*testing.T, *running) {}},
		"it is asked a second time": {3600, func(_ *testing.T, r *running) { r.Stop() }},
		"a request at the machine":  {3600, func(_ *testing.T, r *running) { r.Hurry(-1, true) }},
		"the runner is interrupted": {3600, func(_ *testing.T, r *running) { r.cancel() }},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			d := testDirs(t)
			image := filepath.Join(t.TempDir(), "disk.qcow2")
			if err := os.WriteFile(image, qcow2(t), 0o600); err != nil {
				t.Fatal(err)
			}
			c := testConfig(t, tinyguest.WordIgnorePowerButton)
			*c.Runner.VM.PowerdownTimeout = tt.timeout
			c.Runner.VM.Drives = []runnerconfig.Drive{{Type: runnerconfig.DriveRaw, Name: "data", File: image}}
			r := start(t, c, d)
			console := r.console(t)
			command(t, console, "store /dev/vda "+hex.EncodeToString([]byte(word)))
			client, err := qmp.Dial(t.Context(), r.State().Socket(qemucmd.SocketToolMonitor), qmp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			stats, err := qmp.Do(t.Context(), client, qmp.QueryBlockStats{})
			if err != nil || len(stats) != 1 || stats[0].Stats.WriteOperations == 0 || stats[0].Stats.FlushOperations != 0 {
				t.Fatalf("the guest has written, and flushed nothing: %+v, %v", stats, err)
			}
			blocks, err := qmp.Do(t.Context(), client, qmp.QueryBlock{})
			if err != nil || len(blocks) != 1 || !blocks[0].Inserted.Cache.Writeback {
				t.Fatalf("the disk has a cache: %+v, %v", blocks, err)
			}
			// A copy of the image is what a power cut would leave.
			has := func() bool {
				t.Helper()
				data, err := os.ReadFile(image)
				if err != nil {
					t.Fatal(err)
				}
				left := filepath.Join(t.TempDir(), "left")
				if err := os.WriteFile(left, data, 0o600); err != nil {
					t.Fatal(err)
				}
				raw := left + ".raw"
				tool(t, "qemu-img", "convert", "-f", "qcow2", "-O", "raw", left, raw)
				if data, err = os.ReadFile(raw); err != nil {
					t.Fatal(err)
				}
				return strings.HasPrefix(string(data), word)
			}
			if has() {
				t.Fatal("it is in the image already: the end has nothing to write back")
			}
			r.Stop()
			r.until(t, "the power button is pressed", func(s State) bool { return strings.Contains(s.Message, pressed) })
			tt.stop(t, r)
			if o, err := r.wait(t); err == nil || o.Cause != CauseForced {
				t.Errorf("outcome %+v, %v", o, err)
			}
			if !r.log.said("telling QEMU to quit") || r.log.said("terminating it") || r.log.said("killing it") {
				t.Errorf("QEMU was to quit: %q", r.log.messages)
			}
			if !has() {
				t.Error("what the guest has written is not in the image")
			}
		})
	}
}
