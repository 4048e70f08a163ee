package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// BenchmarkStart measures from the start of a process to the guest's ready line:
// of vmop-runner, and of the same QEMU command line started bare.
//
//	go test -run '^$' -bench Start -benchtime 10x ./frontends/runner
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	exe := filepath.Join(dir, "vmop-runner")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", exe, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	c := benchConfig(b, dir)
	data, err := runnerconfig.Marshal(c)
	if err != nil {
		b.Fatal(err)
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, data, 0o600); err != nil {
		b.Fatal(err)
	}
	// A first run probes the host and decides the machine type.
	runToReady(b, exe, config, c.Runner.RuntimeDir)
	args := bareArgs(b, c)

	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			bareToReady(b, args)
		}
	})
	b.Run("runner", func(b *testing.B) {
		for b.Loop() {
			runToReady(b, exe, config, c.Runner.RuntimeDir)
		}
	})
}

func benchConfig(b *testing.B, dir string) runnerconfig.Config {
	guest := testbin.TinyGuest(b)
	c := runnerconfig.Config{Runner: runnerconfig.Runner{
		DataDir: filepath.Join(dir, "data"), RuntimeDir: filepath.Join(dir, "run"),
		VM: runnerconfig.VM{
			Name: "bench", Firmware: "bios", MaximumRAM: 128 << 20, Accelerator: "tcg",
			KernelBoot: &runnerconfig.KernelBoot{Kernel: guest.Kernel, Initrd: guest.Initrd, Args: tinyguest.CommandLine},
		},
	}}
	runnerconfig.Default(&c)
	return c
}

// bareArgs is the command line of the machine with the serial port on the
// standard output and without the pause.
func bareArgs(b *testing.B, c runnerconfig.Config) []string {
	probed, err := hostprobe.Probe(b.Context(), hostprobe.Options{})
	if err != nil {
		b.Fatal(err)
	}
	m, err := runnerconfig.Machine(&c, runnerconfig.Facts{
		UUID: "2d1f5ae0-5b1c-4f0e-8f9a-0123456789ab", DataDir: c.Runner.DataDir, RuntimeDir: b.TempDir(),
	})
	if err != nil {
		b.Fatal(err)
	}
	cmd, err := qemucmd.Build(m, probed.Host)
	if err != nil {
		b.Fatal(err)
	}
	args := []string{cmd.Executable}
	for _, a := range cmd.Args() {
		switch {
		case a == "-S":
		case strings.HasPrefix(a, "socket,id=charserial0,"):
			args = append(args, "stdio,id=charserial0")
		default:
			args = append(args, a)
		}
	}
	return args
}

func bareToReady(b *testing.B, args []string) {
	cmd := exec.Command(args[0], args[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	err = readReady(out)
	b.StopTimer()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	b.StartTimer()
	if err != nil {
		b.Fatal(err)
	}
}

func runToReady(b *testing.B, exe, config, runtimeDir string) {
	cmd := exec.Command(exe, "-c", config)
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	err := readConsole(ctx, filepath.Join(runtimeDir, qemucmd.SocketConsole.FileName()))
	b.StopTimer()
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	b.StartTimer()
	if err != nil {
		b.Fatal(err)
	}
}

func readConsole(ctx context.Context, socket string) error {
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			defer conn.Close()
			return readReady(conn)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(time.Millisecond):
		}
	}
}

func readReady(r io.Reader) error {
	var seen []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if strings.Contains(lines.Text(), tinyguest.Ready) {
			return nil
		}
		seen = append(seen, lines.Text())
	}
	return fmt.Errorf("the guest ended without its ready line: %q", slices.Clip(seen))
}
