package qemucmd_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
	"pgregory.net/rapid"
)

// What the QEMU of this host says when it cannot start is understood.
func TestExplainsQEMU(t *testing.T) {
	host := realHost(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	image := filepath.Join(dir, "used, by another.img")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(path string) string {
		return fmt.Sprintf(`{"driver":"file","filename":%s,"node-name":"a"}`, strconv.Quote(path))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	start := func(args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, host.QEMU, append([]string{"-display", "none", "-nodefaults", "-S", "-m", "16"}, args...)...)
	}
	// The other one tells on its monitor that it has the image.
	other := start("-machine", "q35", "-blockdev", file(image), "-device", "virtio-blk-pci,drive=a", "-qmp", "stdio")
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := other.StdinPipe() // its end would be the monitor's
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_, _ = in.Close(), other.Process.Kill()
		_ = other.Wait()
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	vnc := port - 5900
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"forward", []string{"-machine", "q35", "-netdev", fmt.Sprintf("user,id=n,hostfwd=tcp:127.0.0.1:%d-:22", port)}, fmt.Sprintf("tcp port %d of the address 127.0.0.1 is taken", port)},
		{"VNC", []string{"-machine", "q35", "-vnc", fmt.Sprintf("127.0.0.1:%d", vnc)}, "the port of display.vnc is taken"},
		{"SPICE", []string{"-machine", "q35", "-spice", fmt.Sprintf("port=%d,addr=127.0.0.1,disable-ticketing=on", port)}, fmt.Sprintf("port %d of the address 127.0.0.1 is taken", port)},
		{"CPU", []string{"-machine", "q35", "-cpu", "nosuch"}, "QEMU has no CPU model nosuch"},
		{"machine type", []string{"-machine", "pc-q35-99.9"}, "does not have the machine type"},
		{"missing image", []string{"-machine", "q35", "-blockdev", file("/nonexistent/a.img")}, "/nonexistent/a.img does not exist"},
		{"image in use", []string{"-machine", "q35", "-blockdev", file(image), "-device", "virtio-blk-pci,drive=a"}, image + " is used by another process"},
		{"kernel", []string{"-machine", "q35", "-kernel", "/nonexistent"}, "the kernel /nonexistent of kernelBoot cannot be opened: No such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := start(c.args...).CombinedOutput()
			if err == nil {
				t.Fatal("it started")
			}
			if got := qemucmd.Explain(string(out)); !strings.Contains(got, c.want) {
				t.Errorf("%s\nis explained by %q, want %q", out, got, c.want)
			}
		})
	}
}

// What this host cannot be made to say.
func TestExplainsWhatOtherHostsSay(t *testing.T) {
	const said = `qemu-system-x86_64: -device {"driver":"usb-host","id":"usbdev-0951-1666"}: failed to init libusb`
	if got := qemucmd.Explain(said); !strings.Contains(got, "usbDevices") {
		t.Errorf("%q", got)
	}
}

// What was never seen is left to speak for itself, and nothing that a guest or a
// file name says makes it fail.
func TestExplainIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`qemu: -blockdev \{\}: Could not open '[$0-9a-z{}\n]*': Permission denied`)).Draw(t, "text")
		if got := qemucmd.Explain(text); len(got) > len(text)+400 {
			t.Errorf("%d bytes about %d", len(got), len(text))
		}
	})
}
