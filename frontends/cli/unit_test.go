package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile/live"
	"github.com/vmop/sdk/vmop/runner"
)

// Wherever the flags of a command stand, it gets the same flags and arguments.
func TestFlagsMayStandAnywhere(t *testing.T) {
	p := &program{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }}
	app := p.app()
	rapid.Check(t, func(t *rapid.T) {
		flags := rapid.SliceOfN(rapid.SampledFrom([][]string{
			{"--show", "all"}, {"-o", "json"}, {"--output=yaml"}, {"--probe"}, {"--disk", "a=b,c"}, {"-n", "--"}, {"--wrong"},
		}), 0, 4).Draw(t, "flags")
		files := rapid.SliceOfN(rapid.SampledFrom([]string{"vm.yaml", "-", "", "all"}), 0, 3).Draw(t, "files")
		var parts [][]string
		for _, f := range files {
			parts = append(parts, []string{f})
		}
		parts = rapid.Permutation(append(parts, flags...)).Draw(t, "order")
		behind := rapid.SliceOfN(rapid.SampledFrom([]string{"--probe", "--", "x"}), 0, 2).Draw(t, "behind --")
		args := []string{"vmop-cli", "render"}
		var wantFlags, wantFiles []string
		for _, part := range parts {
			args = append(args, part...)
			if len(part) == 1 && !strings.HasPrefix(part[0], "--") {
				wantFiles = append(wantFiles, part[0])
			} else {
				wantFlags = append(wantFlags, part...)
			}
		}
		if len(behind) > 0 {
			args = append(append(args, "--"), behind...)
			wantFiles = append(wantFiles, behind...)
		}
		given := slices.Clone(args)
		want := slices.Concat([]string{"vmop-cli", "render"}, wantFlags, []string{"--"}, wantFiles)
		if diff := cmp.Diff(want, reorder(app, args)); diff != "" {
			t.Errorf("%q: -want +got\n%s", args, diff)
		}
		if !slices.Equal(args, given) {
			t.Error("the arguments were changed")
		}
	})
}

// What is typed reaches the guest up to Ctrl-], but for Ctrl-C where it is taken.
func TestKeystrokes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typed := rapid.SliceOf(rapid.SampledFrom([]byte{'a', '\r', keyDetach, keyInterrupt, 0, 0xff})).Draw(t, "typed")
		interrupts := 0
		v := &view{keys: rapid.Bool().Draw(t, "terminal")}
		if rapid.Bool().Draw(t, "run") {
			v.interrupt = func() { interrupts++ }
		}
		keys, detached := v.keystrokes(slices.Clone(typed))
		if !v.keys {
			if string(keys) != string(typed) || detached || interrupts > 0 {
				t.Errorf("a file %q became %q, detached %v", typed, keys, detached)
			}
			return
		}
		before, _, found := strings.Cut(string(typed), string(rune(keyDetach)))
		want := before
		if v.interrupt != nil {
			want = strings.ReplaceAll(before, string(rune(keyInterrupt)), "")
		}
		if string(keys) != want || detached != found || interrupts != len(before)-len(want) {
			t.Errorf("%q became %q, detached %v, interrupted %d times", typed, keys, detached, interrupts)
		}
	})
}

func TestJudge(t *testing.T) {
	qemu, vmopRunner := runner.Holder{PID: 7, Executable: "qemu-system-x86_64"}, runner.Holder{PID: 5, Executable: "vmop-cli"}
	ended := func(c runner.Cause) runner.State {
		return runner.State{Phase: runner.PhaseStopped, Outcome: &runner.Outcome{Cause: c}}
	}
	for _, c := range []struct {
		name    string
		state   runner.State
		holders []runner.Holder
		want    status
	}{
		{"it runs", runner.State{Phase: runner.PhaseBooting, RunnerPID: 5}, []runner.Holder{qemu, vmopRunner}, statusRunning},
		{"it is paused", runner.State{Phase: runner.PhaseBooting, RunnerPID: 5, Paused: true}, []runner.Holder{qemu, vmopRunner}, statusPaused},
		{"it is shut down though paused", runner.State{Phase: runner.PhaseTerminating, RunnerPID: 5, Paused: true}, []runner.Holder{qemu, vmopRunner}, "Terminating"},
		{"it is shutting down", runner.State{Phase: runner.PhaseTerminating, RunnerPID: 5}, []runner.Holder{vmopRunner, qemu}, "Terminating"},
		{"a new runner has written no state yet", ended(runner.CauseGuestShutdown), []runner.Holder{vmopRunner}, "Initializing"},
		{"there is no state at all", runner.State{}, []runner.Holder{vmopRunner}, "Initializing"},
		{"its runner was killed", runner.State{Phase: runner.PhaseBooting, RunnerPID: 5}, []runner.Holder{qemu}, statusOrphaned},
		{"both were killed", runner.State{Phase: runner.PhaseBooting, RunnerPID: 5}, nil, statusDied},
		{"it was stopped", ended(runner.CauseRequested), nil, statusStopped},
		{"it was stopped by force", ended(runner.CauseForced), nil, statusStopped},
		{"it could not be started", ended(runner.CauseStartFailure), nil, statusFailed},
		{"it crashed", ended(runner.CauseQEMUFailure), nil, statusFailed},
		{"an old state without an outcome", runner.State{Phase: runner.PhaseStopped}, nil, statusStopped},
	} {
		if got, _, _ := judge(c.state, c.holders); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A list says why a guest stands still, unless somebody asked for that.
func TestWhyPaused(t *testing.T) {
	for reason, want := range map[string]string{live.ReasonPaused: "", live.ReasonDiskFull: "no space"} {
		m := machine{Status: statusPaused, State: runner.State{
			Phase: runner.PhaseBooting, Message: "the guest executes", Paused: true,
			Conditions: []live.Condition{{Type: live.ResetDone}, {Type: live.GuestExecuting, Reason: reason, Message: "no space"}},
		}}
		if got := m.listed().Message; got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 1023: "1023", 1024: "1Ki", 1536: "1.5Ki", 128 << 20: "128Mi", 1e9: "953.7Mi", 1 << 40: "1Ti", 1<<63 - 1: "8Ei",
	} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// Sockets in a runtime directory have paths that Linux takes, and machines have
// directories of their own.
func TestRuntimeDir(t *testing.T) {
	long := strings.Repeat("n", 63)
	seen := map[string]bool{}
	for _, m := range [][2]string{{"default", "web"}, {"default", long}, {long, "web"}, {long, long}} {
		dir := runtimeDir("/run/user/1000/vmop", m[0], m[1])
		if len(dir) > maxSocketDir || seen[dir] || !strings.HasPrefix(dir, "/run/user/1000/vmop/") {
			t.Errorf("%v: %s", m, dir)
		}
		seen[dir] = true
	}
	none := func(string) string { return "" }
	if got, want := runtimeBase(none, 1<<30), filepath.Join(os.TempDir(), "vmop-1073741824"); got != want {
		t.Errorf("without a login session: %s, want %s", got, want)
	}
}

func TestNamesOfDirectories(t *testing.T) {
	code, _, stderr := call(t, "inspect", "../../etc/passwd")
	if code != exitError || !strings.Contains(stderr, "no such file") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	code, _, stderr = call(t, "stop", "../..", "--data-dir", t.TempDir())
	if code != exitError || !strings.Contains(stderr, "no such machine") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"/srv/a.img": "/srv/a.img",
		`json:{"driver":"raw","file":{"driver":"file","filename":"/srv/a,b.img"}}`: "/srv/a,b.img",
		`json:{"driver":"https","url":"https://example.org/cd.iso"}`:               "https://example.org/cd.iso",
		`json:{"driver":"null-co"}`:                                                `json:{"driver":"null-co"}`,
		`json:{`:                                                                   `json:{`,
	} {
		if got := fileName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Only what is known is ever removed, and no disk without being asked.
func TestWhatDeleteRemoves(t *testing.T) {
	for _, c := range []struct {
		name      string
		mode      fs.FileMode
		withDisks bool
		want      bool
	}{
		{"state.json", 0, false, true},
		{"run.log.old", 0, false, true},
		{"a-disk.img", 0, false, false},
		{"a-disk.img", 0, true, true},
		{"a-disk.img", fs.ModeSymlink, true, false},
		{"a-disk.img", fs.ModeDir, true, false},
		{"a-disk.img", fs.ModeDevice, true, false},
		// Also where no image is beside them: the disks may be elsewhere.
		{"uuid.txt", 0, false, false},
		{"tpm2-00.permall", 0, false, false},
		{"fw-vars.fd", 0, false, false},
		{"machine.json", 0, false, false},
		{"fw-vars.secure.fd", 0, true, true},
		{"tpm2-00.permall", 0, true, true},
		{"notes.txt", 0, true, false},
		{"a.qcow2", 0, true, false},
	} {
		f := machineFile{name: c.name, kind: kindOf(c.name, c.mode)}
		if got := f.remove(c.withDisks); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A read that waits ends when it is told to.
func TestInterruptible(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	in, err := newInterruptible(r)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	if _, err := w.WriteString("typed"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	if n, err := in.Read(buf); err != nil || string(buf[:n]) != "typed" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	ended := make(chan error)
	go func() {
		_, err := in.Read(buf)
		ended <- err
	}()
	in.interrupt()
	select {
	case err := <-ended:
		if err != io.EOF {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the read goes on")
	}
}

// A key that is held down is one request.
func TestDebounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		request := debounced(func() { n++ })
		for range 50 {
			request()
			time.Sleep(sameRequest / 10)
		}
		if n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		time.Sleep(2 * sameRequest)
		if request(); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

func TestPrintable(t *testing.T) {
	if got, want := printableText("a\x1b[2Jb\n\tc\u202e"), "a\\u001b[2Jb\n\tc\\u202e"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := printableCell("a\nb"), `a\u000ab`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Who has a machine's lock has the file that is there: another delete may remove
// it between its opening and its locking.
func TestLockOfARemovedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, lockFileName)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5000 {
				f, err := lockMachine(dir)
				if err != nil {
					continue // another has it
				}
				mine, err := f.Stat()
				if err != nil {
					t.Error(err)
				}
				now, err := os.Stat(path)
				if err != nil || !os.SameFile(mine, now) {
					t.Errorf("what was locked is not there: %v", err)
				}
				if err := errors.Join(os.Remove(path), f.Close()); err != nil {
					t.Error(err)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	all.Wait()
}
