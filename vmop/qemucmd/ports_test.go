package qemucmd_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// withPorts is a machine with room for devices, and the tiny guest.
func withPorts(ctx context.Context, t fataler, dir string) qemucmd.Machine {
	guest, err := tinyguest.Ensure(ctx, tinyguest.Options{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	m := small()
	m.AddressMap = 2
	m.TranslationCache = 64
	m.Monitor.Path = filepath.Join(dir, "monitor")
	m.Serial = &qemucmd.Socket{Path: filepath.Join(dir, "serial")}
	m.KernelBoot = &qemucmd.KernelBoot{Kernel: guest.BzImage, Initrd: guest.Initrd, Args: tinyguest.CommandLine}
	return m
}

// TestDevicesArePluggedIntoPorts plugs disks and a network card into a running
// guest, by a port of their own and by the controller of plugged disks. The guest
// finds them, finds them again after a reset, and releases them.
func TestDevicesArePluggedIntoPorts(t *testing.T) {
	dir := shortDir(t)
	t.Chdir(dir)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	m := withPorts(ctx, t, dir)
	file := realWorld(t, dir).file
	r, err := launch(ctx, m, realHost(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := net.Dial("unix", m.Serial.Path)
	if err != nil {
		t.Fatal(err)
	}
	console := tinyguest.NewConsole(conn)
	defer console.Close()
	do := func(command string, args any) {
		t.Helper()
		if _, err := r.Execute(ctx, command, args); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
	// sees waits until the guest sees exactly the wanted of all that is plugged.
	sees := func(when string, wanted ...string) {
		t.Helper()
		for {
			disks, err := console.Command(ctx, "disks")
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			cards, err := console.Command(ctx, "mac")
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			right := true
			for _, thing := range []string{"serial one", "serial two", "02:00:00:00:00:07"} {
				right = right && strings.Contains(disks+cards, thing) == strings.Contains(strings.Join(wanted, "\n"), thing)
			}
			if right {
				return
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s the guest has not exactly %q:\n%s\n%s", when, wanted, disks, cards)
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	do("cont", nil)
	if err := console.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	sees("in the beginning")

	for i, name := range []string{"one", "two"} {
		do("blockdev-add", map[string]any{
			"driver": "raw", "node-name": name, "file": map[string]any{"driver": "file", "filename": file(fmt.Sprint("plugged", i), "")},
		})
	}
	do("device_add", map[string]any{"driver": "virtio-blk-pci", "id": "plugged0", "bus": qemucmd.PortID(0), "drive": "one", "serial": "one"})
	do("netdev_add", map[string]any{"type": "user", "id": "pluggednet"})
	do("device_add", map[string]any{"driver": "virtio-net-pci", "id": "pluggednic", "bus": qemucmd.PortID(qemucmd.HotPlugPorts - 1), "netdev": "pluggednet", "mac": "02:00:00:00:00:07"})
	do("device_add", map[string]any{"driver": "virtio-scsi-pci", "id": qemucmd.SCSIControllerID, "bus": qemucmd.PortID(qemucmd.SCSIPort)})
	do("device_add", map[string]any{
		"driver": "scsi-hd", "id": "plugged1", "bus": qemucmd.SCSIControllerID + ".0", "scsi-id": 0, "lun": 1, "drive": "two", "serial": "two",
	})
	all := []string{"serial one", "serial two", "02:00:00:00:00:07"}
	sees("after plugging", all...)

	do("system_reset", nil)
	if err := console.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	sees("after a reset", all...)

	for _, id := range []string{"plugged0", "plugged1", "pluggednic"} {
		do("device_del", map[string]any{"id": id})
	}
	sees("after unplugging")
}

// TestNothingIsPluggedIntoTheOriginalMap is why there is another one.
func TestNothingIsPluggedIntoTheOriginalMap(t *testing.T) {
	dir := shortDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m := small()
	m.TranslationCache = 32
	m.Monitor.Path = filepath.Join(dir, "monitor")
	r, err := launch(ctx, m, realHost(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Execute(ctx, "device_add", map[string]any{"driver": "virtio-rng-pci", "id": "more"}); err == nil || !strings.Contains(err.Error(), "hotplug") {
		t.Errorf("a device was plugged: %v", err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// BenchmarkPorts boots the guest with either map: what the ports cost.
func BenchmarkPorts(b *testing.B) {
	h, err := probed()
	if err != nil {
		b.Fatalf("%v; run: make deps", err)
	}
	for _, addresses := range []int{1, 2} {
		for _, firmware := range []qemucmd.FirmwareKind{qemucmd.FirmwareBIOS, qemucmd.FirmwareUEFI} {
			b.Run(fmt.Sprintf("map=%d/%s", addresses, firmware), func(b *testing.B) {
				for b.Loop() {
					dir := b.TempDir()
					b.Chdir(dir)
					ctx, cancel := context.WithTimeout(b.Context(), 3*patience)
					m := withPorts(ctx, b, ".")
					m.AddressMap, m.Firmware.Kind = addresses, firmware
					if firmware != qemucmd.FirmwareBIOS {
						m.Firmware.VarsPath = filepath.Join(dir, "vars")
					}
					w, err := laden(ctx, m, h)
					cancel()
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(w.rest>>10)/1024, "MiB")
					b.ReportMetric(w.seconds, "cpu-s")
				}
			})
		}
	}
}
