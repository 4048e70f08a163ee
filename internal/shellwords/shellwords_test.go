package shellwords_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/internal/testbin"
)

// words are what a shell makes of a line: the arguments of the command that it starts.
func words(t interface{ Fatalf(string, ...any) }, shell, line string, env ...string) []string {
	cmd := exec.Command(shell, "-c", line)
	cmd.Env = append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s -c %q: %v\n%s", shell, line, err, &errs)
	}
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// A real shell gives the same words back, whatever bytes are in them.
func TestAShellGivesTheSameWordsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		special := rapid.StringOf(rapid.SampledFrom([]rune(" \t\n'\"\\$`!*?[]{}()<>|&;#~=%^-a\u00e9")))
		word := rapid.OneOf(special, rapid.Map(rapid.SliceOf(rapid.ByteRange(1, 255)), func(b []byte) string { return string(b) }))
		want := rapid.SliceOfN(word, 1, 6).Draw(t, "words")
		line := shellwords.Join(append([]string{"printf", `%s\0`}, want...)...)
		if got := words(t, "/bin/sh", line); !slices.Equal(got, want) {
			t.Fatalf("%q became %q by %s", want, got, line)
		}
	})
}

// What stands first is a command, whatever it is called.
func TestTheFirstWordIsTheCommand(t *testing.T) {
	dir := t.TempDir()
	shells := []string{"/bin/sh", testbin.Find(t, "bash"), testbin.Find(t, "zsh")}
	script := filepath.Join(dir, "words")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf '%s\\0' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"plain", "A=b", "if", "then", "time", "coproc", "function", "repeat", "select", "foreach", "{", "}", "!", "[[", "~", "#", "a b", "'", "*", "$HOME", "-x", "a\nb", "&",
	} {
		if err := os.Symlink(script, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		for _, shell := range shells {
			want := []string{"a b", "A=b", "if", "", "~", "x\\y"}
			if got := words(t, shell, shellwords.Join(append([]string{name}, want...)...), "PATH="+dir+":"+os.Getenv("PATH"), "A="); !slices.Equal(got, want) {
				t.Errorf("%s: %q got %q, want %q", shell, name, got, want)
			}
		}
	}
}

// What needs no quotes has none: people read it.
func TestPlainWordsStayPlain(t *testing.T) {
	for word, want := range map[string]string{"web": "web", "/srv/a-b_c.img": "/srv/a-b_c.img", "name=/x": "name=/x", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "~": "'~'"} {
		if got := shellwords.Quote(word); got != want {
			t.Errorf("%q is quoted as %s, want %s", word, got, want)
		}
	}
	if got := shellwords.Join("vmop-cli", "start", "web", "--data-dir", "/srv/my machines"); got != "vmop-cli start web --data-dir '/srv/my machines'" {
		t.Error(got)
	}
}
