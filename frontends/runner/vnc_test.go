package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/rfb"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// stream is a program as something to read from and to write to.
type stream struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
}

// openVNC connects to the display of the machine of a configuration.
func openVNC(t *testing.T, config string) *stream {
	t.Helper()
	cmd := command(t, "-c", config, "-vnc")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &stream{Reader: out, WriteCloser: in, cmd: cmd}
}

// Beside the runner, the VNC server on the socket is spoken with as a viewer
// does, with the password of the secret and no other; a viewer that goes ends the
// connection, and the machine goes on.
func TestVNCOnASocket(t *testing.T) {
	dir, config := writeConfig(t)
	var stderr bytes.Buffer
	if code := Main([]string{"-c", config, "-vnc"}, os.Stdout, &stderr); code != runner.ExitStart || !strings.Contains(stderr.String(), "the machine test has no VNC server on a UNIX socket") {
		t.Errorf("without a display: exit code %d, %s", code, &stderr)
	}
	data, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := runnerconfig.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "run", qemucmd.SocketVNC.FileName())
	c.Runner.VM.Display = &runnerconfig.Display{VNC: &runnerconfig.VNC{Socket: socket}}
	if data, err = runnerconfig.Marshal(c); err == nil {
		err = os.WriteFile(config, data, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "display-password"), []byte("geheim"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	stderr.Reset()
	if code := Main([]string{"-c", config, "-vnc"}, os.Stdout, &stderr); code != runner.ExitStart || !strings.Contains(stderr.String(), "the VNC server of the machine test: dial unix "+socket) {
		t.Errorf("before its start: exit code %d, %s", code, &stderr)
	}

	machine := command(t, "-c", config)
	if err := machine.Start(); err != nil {
		t.Fatal(err)
	}
	waitReady(t, filepath.Join(dir, "run", qemucmd.SocketConsole.FileName()))
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Dir(socket)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the socket: %v, %v", info, err)
	}

	for password, want := range map[string]error{"geheim": nil, "falsch": rfb.ErrRefused} {
		viewer := openVNC(t, config)
		timer := time.AfterFunc(patience, func() { _ = viewer.cmd.Process.Kill() })
		screen, err := rfb.Handshake(viewer, password)
		if !errors.Is(err, want) || !screen.Password || want == nil && (screen.Width <= 0 || screen.Height <= 0) {
			t.Errorf("the password %s: %+v, %v", password, screen, err)
		}
		if err := viewer.Close(); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, viewer); err != nil {
			t.Error(err)
		}
		if err := viewer.cmd.Wait(); err != nil {
			t.Errorf("the connection of the password %s: %v", password, err)
		}
		timer.Stop()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := rfb.Open(ctx, "unix", socket, "geheim")
	if err != nil {
		t.Fatalf("the machine does not go on: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := machine.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, machine); err != nil {
		t.Errorf("the runner: %v", err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}
