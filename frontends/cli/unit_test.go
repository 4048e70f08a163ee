package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
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

// A signal that came before the engine was there to be stopped is not lost.
func TestInterruptedBefore(t *testing.T) {
	for _, before := range []bool{false, true} {
		ctx, stop := context.WithCancel(t.Context())
		if before {
			stop()
		}
		if got := interruptedBefore(ctx, stop)(); got != before {
			t.Errorf("%v, want %v", got, before)
		}
		if ctx.Err() == nil {
			t.Error("signals are still looked for there")
		}
		stop()
	}
}

// A flag's default is told once, and one that is nothing is not told as 0 or false.
func TestDefaultsAreTold(t *testing.T) {
	p := &program{}
	for _, c := range p.app().Commands {
		for _, f := range c.Flags {
			text := fmt.Sprint(f)
			if strings.Count(text, "(default:") > 1 || strings.Contains(text, "(default: 0)") && f.Names()[0] != "stopped-exit" ||
				strings.Contains(text, "(default: 0s)") || strings.Contains(text, "(default: false)") {
				t.Errorf("%s: %s", c.Name, text)
			}
		}
	}
}
