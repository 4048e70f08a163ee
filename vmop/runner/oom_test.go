package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A QEMU that the kernel has killed for its memory says so, and no other does.
func TestOutOfMemoryIsNamed(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := readMemoryEvents(dir).explain(dir); got != "" {
		t.Errorf("without a controller: %q", got)
	}
	put("memory.events", "low 0\noom 1\noom_kill 1\noom_group_kill 0\n")
	before := readMemoryEvents(dir)
	if got := before.explain(dir); before.kills != 1 || got != "" {
		t.Errorf("%+v: %q", before, got)
	}
	put("memory.events", "low 0\noom 2\noom_kill 2\n")
	put("memory.max", "209715200\n")
	o := machineEnd{described: "qemu ended: signal: killed", memory: before.explain(dir)}.outcome()
	if o.Cause != CauseQEMUFailure || !strings.Contains(o.Message, "its memory limit of 200 MiB was used up") {
		t.Errorf("%+v", o)
	}
	put("memory.max", "max\n")
	if got := before.explain(dir); !strings.Contains(got, "host has run out of memory") {
		t.Errorf("without a limit: %q", got)
	}
}

// Where nodes still have control groups of version 1, it is named as well.
func TestOutOfMemoryOfVersion1(t *testing.T) {
	root := t.TempDir()
	const text = "9:name=systemd:/pods/a\n4:memory:/pods/a\n0::/elsewhere\n"
	for _, dir := range []string{filepath.Join(root, "memory"), filepath.Join(root, "memory", "pods", "a")} { // in a container, on the host
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if got := cgroupOf(root, text); got != dir {
			t.Errorf("%s instead of %s", got, dir)
		}
		put := func(name, text string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
		before := readMemoryEvents(dir)
		put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
		put("memory.limit_in_bytes", "209715200\n")
		if got := before.explain(dir); !strings.Contains(got, "its memory limit of 200 MiB was used up") {
			t.Errorf("with a limit: %q", got)
		}
		put("memory.limit_in_bytes", "9223372036854771712\n")
		if got := before.explain(dir); !strings.Contains(got, "host has run out of memory") {
			t.Errorf("without a limit: %q", got)
		}
	}
	for text, want := range map[string]string{"0::/pods/a\n": filepath.Join(root, "pods", "a"), "": root, "nonsense\n": root} {
		if got := cgroupOf(root, text); got != want {
			t.Errorf("%q: %s instead of %s", text, got, want)
		}
	}
}

// Nobody waited for the guest if that was asked for.
func TestHurriedEnd(t *testing.T) {
	o := machineEnd{success: true, asked: true, forced: true, hurried: true}.outcome()
	if o.Cause != CauseForced || strings.Contains(o.Message, "in time") || o.ExitCode() != ExitForced {
		t.Errorf("%+v", o)
	}
}

// What is left of a console's line when control sequences are taken out is none.
func TestPlainIsPlain(t *testing.T) {
	for line, want := range map[string]string{
		"\x1b\x1b[0m[2J evil": " evil", "\x1b[1mbold\x1b[0m": "bold", "a\x1b\x1b\x1b[0m[0m[2Jb": "ab", "plain": "plain",
	} {
		if got := plain(line); got != want {
			t.Errorf("%q became %q, want %q", line, got, want)
		}
	}
}
