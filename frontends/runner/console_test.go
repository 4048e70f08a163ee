package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runner"
)

// The console is in the log, and can be spoken with from beside the runner; a
// view ends with a key and the machine goes on.
func TestConsole(t *testing.T) {
	dir, config := writeConfig(t)
	var log bytes.Buffer
	cmd := command(t, "-c", config)
	cmd.Stdout = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitReady(t, filepath.Join(dir, "run", qemucmd.SocketConsole.FileName()))

	view := command(t, "-c", config, "-console")
	terminal, err := pty.Start(view)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	console := tinyguest.NewConsole(terminal)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := console.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := console.Command(ctx, "cpus"); err != nil || !strings.Contains(got, "online 0") {
		t.Errorf("cpus: %q, %v", got, err)
	}
	if err := console.Type("\x1d"); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, view); err != nil {
		t.Errorf("the view: %v", err)
	}

	off := command(t, "-c", config, "-console")
	off.Stdin = strings.NewReader("poweroff\n")
	out, err := off.Output()
	if err != nil || !strings.Contains(string(out), "> poweroff") {
		t.Errorf("poweroff: %q, %v", out, err)
	}
	if err := wait(t, cmd); err != nil {
		t.Errorf("the runner: %v", err)
	}
	if !strings.Contains(log.String(), " console: "+tinyguest.Ready+"\n") {
		t.Errorf("the log has no console:\n%s", &log)
	}
	var stderr bytes.Buffer
	if code := Main([]string{"-c", config, "-console"}, os.Stdout, &stderr); code != runner.ExitStart || !strings.Contains(stderr.String(), "the machine test does not run here") {
		t.Errorf("after its end: exit code %d, %s", code, &stderr)
	}
}
