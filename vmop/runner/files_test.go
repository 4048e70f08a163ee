package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// The parts of the timeout come in their order and end within it.
func TestPowerDownSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		timeout := time.Duration(rapid.Int64Range(-10, 1e6).Draw(t, "seconds")) * time.Second
		s := powerDownSchedule(timeout)
		if s.Agent < 0 || s.Agent > s.Quit || s.Quit > s.Kill || s.Kill > max(timeout, 0) {
			t.Fatalf("%v: %+v", timeout, s)
		}
		if timeout > 0 && (s.Agent == 0 || s.Agent == s.Quit || s.Quit == s.Kill) {
			t.Fatalf("%v: %+v leaves a part nothing", timeout, s)
		}
	})
}

func TestOutcome(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  machineEnd
		want Cause
		code int
	}{
		{"power-off by the guest", machineEnd{success: true, guest: true, reason: qmp.CauseGuestShutdown}, CauseGuestShutdown, 0},
		{"power-off on request", machineEnd{success: true, guest: true, reason: qmp.CauseGuestShutdown, asked: true}, CauseRequested, 0},
		{"reset with changes that wait", machineEnd{success: true, resetEnds: true, guest: true, reason: qmp.CauseGuestReset}, CauseGuestReset, 0},
		{"reset by others with changes that wait", machineEnd{success: true, resetEnds: true, reason: qmp.CauseHostReset}, CauseGuestReset, 0},
		{"reset after a panic with changes that wait", machineEnd{success: true, resetEnds: true, guest: true, reason: qmp.CauseGuestReset, panicked: true}, CauseGuestReset, 0},
		{"reset on request to shut down", machineEnd{success: true, resetEnds: true, guest: true, reason: qmp.CauseGuestReset, asked: true}, CauseRequested, 0},
		{"reset while being told to quit", machineEnd{success: true, resetEnds: true, guest: true, reason: qmp.CauseGuestReset, asked: true, forced: true}, CauseForced, 3},
		{"killed after a reset with changes that wait", machineEnd{resetEnds: true, guest: true, reason: qmp.CauseGuestReset}, CauseGuestReset, 0},
		{"killed after a power-off", machineEnd{guest: true, reason: qmp.CauseGuestShutdown}, CauseGuestShutdown, 0},
		{"reset of a machine type that ends then", machineEnd{success: true, guest: true, reason: qmp.CauseGuestReset}, CauseHostQuit, 3},
		{"such a reset after a panic", machineEnd{success: true, guest: true, reason: qmp.CauseGuestReset, panicked: true}, CauseGuestPanic, 4},
		{"quit after the timeout", machineEnd{success: true, reason: qmp.CauseHostQuit, asked: true, forced: true}, CauseForced, 3},
		{"power-off while being told to quit", machineEnd{success: true, guest: true, reason: qmp.CauseGuestShutdown, asked: true, forced: true}, CauseGuestShutdown, 0},
		{"TERM from elsewhere", machineEnd{success: true, reason: "host-signal"}, CauseHostQuit, 3},
		{"killed", machineEnd{status: "signal: killed", described: "qemu ended: signal: killed"}, CauseQEMUFailure, 4},
		{"killed by us", machineEnd{status: "signal: killed", asked: true, forced: true}, CauseForced, 3},
		{"panic", machineEnd{success: true, guest: true, reason: qmp.CauseGuestPanic, panicked: true}, CauseGuestPanic, 4},
		{"swtpm", machineEnd{success: true, guest: true, reason: qmp.CauseGuestShutdown, asked: true, helper: "swtpm ended"}, CauseHelperFailure, 4},
		{"no word", machineEnd{success: true}, CauseHostQuit, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.end.outcome()
			if o.Cause != tt.want || o.ExitCode() != tt.code || o.Message == "" {
				t.Errorf("%+v, exit %d; want %s, %d", o, o.ExitCode(), tt.want, tt.code)
			}
		})
	}
}

// Whoever did not want to wait for the guest is not told that it took too long.
func TestOutcomeOfAHurriedStop(t *testing.T) {
	end := machineEnd{success: true, reason: qmp.CauseHostQuit, asked: true, forced: true}
	if late := end.outcome(); !strings.Contains(late.Message, "in time") {
		t.Error(late.Message)
	}
	end.hurried = true
	if asked := end.outcome(); asked.Cause != CauseForced || strings.Contains(asked.Message, "in time") {
		t.Errorf("%+v", asked)
	}
}

func TestTerminationMessageFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Outcome{Cause: CauseStartFailure, Message: strings.Repeat(rapid.StringN(1, 10, -1).Draw(t, "text"), rapid.IntRange(0, 3000).Draw(t, "times"))}
		b := o.TerminationMessage()
		var back Outcome
		if err := json.Unmarshal(b, &back); err != nil || back.Cause != o.Cause || len(b) > 4096 {
			t.Fatalf("%d bytes: %s, %v", len(b), b, err)
		}
	})
}

// A file that exists is never touched.
func TestCreateFileKeepsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk.img")
	if created, err := createImage(path, 1); err != nil || !created {
		t.Fatal(created, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 4096 || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if created, err := createImage(path, 1<<20); err != nil || created {
		t.Fatal(created, err)
	}
	if created, err := copyFile(path, path); err != nil || created {
		t.Fatal(created, err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "precious" {
		t.Fatalf("%q, %v", data, err)
	}
	// A broken link is something that exists, too.
	link := filepath.Join(filepath.Dir(path), "link")
	if err := os.Symlink("/nonexistent/target", link); err != nil {
		t.Fatal(err)
	}
	if created, err := createImage(link, 1); err != nil || created {
		t.Fatal(created, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
}

func TestStateFile(t *testing.T) {
	f := &StateFile{Path: filepath.Join(t.TempDir(), "state.json")}
	if _, err := ReadState(f.Path); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	want := State{Name: "a", Phase: PhaseBooting, Sockets: map[string]string{"console": "/x"}}
	f.State(want)
	got, err := ReadState(f.Path)
	if err != nil || f.Err() != nil || got.Name != "a" || got.Socket(qemucmd.SocketConsole) != "/x" {
		t.Errorf("%+v, %v, %v", got, err, f.Err())
	}
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// One line stays one line, whatever a child prints.
func TestLogLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text") + rapid.SampledFrom([]string{"", "\x7f", "\u009b2J", "\x1b[2J", "a\u0085b", "\ufffe"}).Draw(t, "control")
		for _, asJSON := range []bool{false, true} {
			var buf bytes.Buffer
			(&LogReporter{Out: &buf, JSON: asJSON}).Message(Message{Level: LevelWarning, Source: "qemu", Text: text})
			if n := strings.Count(buf.String(), "\n"); n != 1 || !strings.HasSuffix(buf.String(), "\n") {
				t.Fatalf("%d lines: %q", n, buf.String())
			}
			if asJSON && !json.Valid(buf.Bytes()) {
				t.Fatalf("not JSON: %q", buf.String())
			}
			if strings.ContainsFunc(strings.TrimSuffix(buf.String(), "\n"), func(r rune) bool { return unicode.IsControl(r) || r == 0xfffe }) {
				t.Fatalf("control characters: %q", buf.String())
			}
		}
	})
}

func TestRuntimeDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := makeRuntimeDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := makeRuntimeDir(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	// What is not a runner's is not removed.
	foreign := filepath.Join(dir, "thesis.txt")
	for _, name := range []string{foreign, filepath.Join(dir, "qemu.pid")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeRuntimeDir(dir); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "thesis.txt" {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestDefaultDirectories(t *testing.T) {
	env := map[string]string{}
	s := Surroundings{Getenv: func(k string) string { return env[k] }, UserName: "u", Home: "/home/u", Creatable: func(string) bool { return true }}
	c := &runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "vm"}}}
	if d := DefaultDirectories(c, s); d != (Directories{"/home/u/.local/share/vmrunner/vm", "/run/u/vmrunner/vm"}) {
		t.Error(d)
	}
	s.Creatable = func(string) bool { return false }
	if d := DefaultDirectories(c, s); d.Runtime != filepath.Join(os.TempDir(), "u/vmrunner/vm") {
		t.Error(d)
	}
	env["XDG_DATA_HOME"], env["XDG_RUNTIME_DIR"] = "/d", "/r"
	if d := DefaultDirectories(c, s); d != (Directories{"/d/vmrunner/vm", "/r/vmrunner/vm"}) {
		t.Error(d)
	}
	c.Runner.DataDir, c.Runner.RuntimeDir = "/x", "/y"
	if d := DefaultDirectories(c, s); d != (Directories{"/x", "/y"}) {
		t.Error(d)
	}
}

func TestImagesGrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(path, []byte("the guest's"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ asked, size int64 }{{1 << 20, 1 << 20}, {1<<20 + 1, 1<<20 + filecopy.Align}, {5, 1<<20 + filecopy.Align}} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(growImage(f, step.asked), f.Close()); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || int64(len(data)) != step.size {
			t.Fatalf("asked for %d: %d bytes, %v", step.asked, len(data), err)
		}
		if rest, ok := bytes.CutPrefix(data, []byte("the guest's")); !ok || len(bytes.Trim(rest, "\x00")) > 0 {
			t.Errorf("asked for %d: the content is another", step.asked)
		}
	}
}
