package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// patience bounds every wait for a guest.
const patience = 3 * time.Minute

// asRunner makes the test binary a vmop-runner.
const asRunner = "VMOP_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asRunner) != "" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	if image := os.Getenv(asInit); image != "" {
		os.Exit(convertAsInit(image))
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := testbin.Self(context.Background(), t, asRunner+"=1", args...)
	t.Cleanup(func() {
		if cmd.Process != nil && cmd.ProcessState == nil { // the test has failed
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

// writeConfig makes a directory with the configuration of a machine.
func writeConfig(t *testing.T, words ...string) (dir, config string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "vmop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	guest := testbin.TinyGuest(t)
	testbin.Find(t, testbin.QEMU)
	timeout := int64(60)
	data, err := runnerconfig.Marshal(runnerconfig.Config{Runner: runnerconfig.Runner{
		DataDir: filepath.Join(dir, "data"), RuntimeDir: filepath.Join(dir, "run"),
		VM: runnerconfig.VM{
			Name: "test", Firmware: "bios", MaximumRAM: 128 << 20, Accelerator: "tcg", PowerdownTimeout: &timeout,
			KernelBoot: &runnerconfig.KernelBoot{Kernel: guest.Kernel, Initrd: guest.Initrd, Args: strings.Join(append([]string{tinyguest.CommandLine}, words...), " ")},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	config = filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, config
}

// Each signal that asks for an end lets the guest shut down, also when nobody
// reads the log; the cause is in the termination message, and nothing is left.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			dir, config := writeConfig(t)
			termination := filepath.Join(dir, "termination")
			if err := os.WriteFile(termination, []byte("of an earlier machine"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := command(t, "-c", config, "-termination-log", termination)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitReady(t, filepath.Join(dir, "run", qemucmd.SocketConsole.FileName()))
			if data, err := os.ReadFile(termination); err != nil || len(data) > 0 {
				t.Errorf("the earlier termination message is still there: %q, %v", data, err)
			}
			if err := out.Close(); err != nil { // from here on, writing is SIGPIPE
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if err := wait(t, cmd); err != nil {
				t.Errorf("exit: %v", err)
			}
			data, err := os.ReadFile(termination)
			var o runner.Outcome
			if err == nil {
				err = json.Unmarshal(data, &o)
			}
			if err != nil || o.Cause != runner.CauseRequested || !o.Orderly {
				t.Errorf("termination message %s, %v", data, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "run")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the runtime directory is left: %v", err)
			}
		})
	}
}

// A signal that comes while the host is still examined ends the runner in order, too: without a
// termination message, the machine would count as failed.
func TestSignalBeforeTheMachine(t *testing.T) {
	dir, config := writeConfig(t)
	termination, begun := filepath.Join(dir, "termination"), filepath.Join(dir, "begun")
	qemu := filepath.Join(dir, "qemu")
	if err := os.WriteFile(qemu, []byte("#!/bin/sh\n: >'"+begun+"'\nexec sleep 3600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "-c", config, "-termination-log", termination, "-qemu", qemu)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the host is not examined")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, cmd); err != nil {
		t.Errorf("exit: %v; %s", err, &stderr)
	}
	data, err := os.ReadFile(termination)
	var o runner.Outcome
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil || o.Cause != runner.CauseRequested || !o.Orderly || o.Message != "stopped before the machine ran" {
		t.Errorf("termination message %s, %v", data, err)
	}
}

func TestExitCodes(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("\"/Runner\":\n  vm: {name: a, maximumCpus: many}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"unknown flag", []string{"-x"}, runner.ExitUsage, "flag provided but not defined: -x"},
		{"argument", []string{"config.yaml"}, runner.ExitUsage, `unexpected argument "config.yaml"`},
		{"log format", []string{"-log-format", "xml"}, runner.ExitUsage, "want text or json"},
		{"no configuration", []string{"-c", "/nonexistent"}, runner.ExitStart, "open /nonexistent"},
		{"bad configuration", []string{"-c", bad}, runner.ExitStart, "vm.maximumCpus: found the text \"many\", want a whole number"},
		{"help", []string{"-help"}, runner.ExitOK, ""},
		{"version", []string{"-version"}, runner.ExitOK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := Main(tt.args, io.Discard, &stderr); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(stderr.String(), tt.stderr) || tt.stderr == "" && stderr.Len() > 0 {
				t.Errorf("printed %q, want %q in it", &stderr, tt.stderr)
			}
		})
	}
}

func waitReady(t *testing.T, socket string) {
	t.Helper()
	var conn net.Conn
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if conn, err = net.Dial("unix", socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := readReady(conn); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, cmd *exec.Cmd) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatal("the runner does not end")
		return nil
	}
}
