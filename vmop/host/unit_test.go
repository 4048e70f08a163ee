package host

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func goldenUnits() map[string]Unit {
	command := []string{"/usr/bin/vmop-cli", "start", "--foreground", "--data-dir", `/home/ann b/100% $HOME "q" \`, "lab/web"}
	return map[string]Unit{
		"user":   {Namespace: "lab", Name: "web", Command: command, Stop: 150},
		"system": {Namespace: "lab", Name: "web", Command: command, Stop: 150, System: true, User: "ann", Restart: RestartAlways},
		"root":   {Namespace: "lab", Name: "web", Command: command, Stop: 150, System: true},
		"bridge": {Name: "web", Command: command, Stop: 60, Bridge: true, Restart: RestartNo},
	}
}

func TestUnits(t *testing.T) {
	for name, u := range goldenUnits() {
		text, err := u.Text()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".service")
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || text != string(want) {
			t.Errorf("%s is another unit, %v:\n%s", file, err, text)
		}
	}
}

// systemd takes the units.
func TestSystemdTakesTheUnits(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatalf("%v; run: make deps", err)
	}
	for name, u := range goldenUnits() {
		u.Command[0] = "/bin/true"
		text, err := u.Text()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), u.FileName())
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _ := exec.CommandContext(t.Context(), tool, "verify", "--man=no", file).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, filepath.Base(file)) {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// unquote reads a word as systemd does, with specifiers and variables replaced by
// nothing.
func unquote(word string) string {
	word = strings.TrimSuffix(strings.TrimPrefix(word, `"`), `"`)
	var out []byte
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == '\\' && word[i+1] == 'x':
			n, err := strconv.ParseUint(word[i+2:i+4], 16, 8)
			if err != nil {
				return "broken"
			}
			out = append(out, byte(n))
			i += 3
		case c == '\\':
			i++
			out = append(out, word[i])
		case c == '%' || c == '$':
			if i++; word[i] != c {
				return "replaced"
			}
			out = append(out, c)
		case c == '"':
			return "more than one word"
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// Whatever is in a word, it is that one word, in its line.
func TestUnitWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.StringOf(rapid.SampledFrom([]rune("%$\"'\\ \n;x41{}#=\t")))).Draw(t, "word")
		quoted := unitWord(word)
		if got := unquote(quoted); got != word {
			t.Fatalf("%s is %q, want %q", quoted, got, word)
		}
		if strings.ContainsAny(quoted, "\n\r\x00") {
			t.Fatalf("%q ends its line", quoted)
		}
	})
}

func TestUnitsThatAreRefused(t *testing.T) {
	good := Unit{Name: "web", Command: []string{"/bin/vmop-cli"}}
	for _, change := range []func(*Unit){
		func(u *Unit) { u.Command = nil },
		func(u *Unit) { u.Command = []string{"vmop-cli"} },
		func(u *Unit) { u.Command = []string{"/home/a b/vmop-cli"} },
		func(u *Unit) { u.Command = []string{"/bin/%n"} },
		func(u *Unit) { u.User = "a\nExecStart=/bin/sh" },
		func(u *Unit) { u.Restart = "maybe\n" },
	} {
		u := good
		change(&u)
		if text, err := u.Text(); err == nil {
			t.Errorf("%+v is\n%s", u, text)
		}
	}
}

func TestEnableAndDisable(t *testing.T) {
	b := newBench(t)
	home := t.TempDir()
	b.h.getenv = func(name string) string { return map[string]string{"HOME": home}[name] }
	o, err := b.m.Object()
	b.ok(err)
	u := UnitOf(o.VirtualMachine, []string{"/bin/vmop-cli"})
	for range 2 { // the second time changes nothing
		path, err := b.h.Enable(u)
		b.ok(err)
		link, err := os.Stat(filepath.Join(home, ".config/systemd/user/default.target.wants/vmop.lab.web.service"))
		b.ok(err)
		if file, err := os.Stat(path); err != nil || !os.SameFile(file, link) {
			t.Errorf("%v: the link leads elsewhere", err)
		}
	}
	if _, err := b.h.Rename(b.m, "lab", "front"); err == nil || !strings.Contains(err.Error(), "disable it first") {
		t.Error(err)
	}
	if _, err := b.h.Delete(t.Context(), b.m, DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "disable it first") {
		t.Error(err)
	}
	if units, err := b.h.Disable("lab", "web"); err != nil || len(units) != 1 || len(b.h.Enabled("lab", "web")) != 0 {
		t.Errorf("%v, %v", units, err)
	}
	b.empty(filepath.Join(home, ".config/systemd/user"), "default.target.wants")
	b.empty(filepath.Join(home, ".config/systemd/user/default.target.wants"))
}

// A unit follows the manifest in what that decides, and one that somebody has changed
// stays as it is.
func TestUnitsFollowTheManifest(t *testing.T) {
	b := newBench(t)
	getenv := b.h.getenv
	b.h.getenv = func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return filepath.Dir(b.external)
		}
		return getenv(name)
	}
	o, err := b.m.Object()
	b.ok(err)
	u := goldenUnits()["user"]
	u.Restart = RestartAlways
	path, err := b.h.Enable(u)
	b.ok(err)
	vm := o.VirtualMachine.DeepCopy()
	timeout := int32(7)
	vm.Spec.VM.PowerdownTimeout = &timeout
	r, err := b.h.Renew(vm)
	if err != nil || len(r.Units) != 1 || len(r.Stale) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	u.Stop = UnitOf(vm, nil).Stop
	want, err := u.Text()
	b.ok(err)
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%v:\n%s", err, got)
	}
	if r, err := b.h.Renew(vm); err != nil || len(r.Units)+len(r.Stale) != 0 {
		t.Errorf("what is right is written anew: %+v, %v", r, err)
	}
	timeout = 8
	for _, changed := range []string{strings.Replace(want, "UMask=0077", "UMask=0022", 1), strings.Replace(want, "Restart=always", "Restart=perhaps", 1), strings.Replace(want, "TimeoutStopSec=", "TimeoutStopSec=about ", 1)} {
		b.ok(os.WriteFile(path, []byte(changed), 0o600))
		r, err := b.h.Renew(vm)
		if err != nil || len(r.Units) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != changed {
			t.Errorf("it was overwritten: %v", err)
		}
	}
}
