package qemucmd_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/qemucmd"
	"pgregory.net/rapid"
)

// weight is what processes have of the host's memory, in bytes, each page
// divided by the number of processes that share it (PSS).
type weight struct {
	// guest is the guest's RAM, rest is all else.
	guest, rest int64
	// seconds is the processors' time so far.
	seconds float64
}

// ticks is the unit of times in /proc: 1/100 s on every Linux.
const ticks = 100

// spent reads how long a process has kept processors busy.
func spent(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	user, errUser := strconv.Atoi(fields[11])
	system, errSystem := strconv.Atoi(fields[12])
	return float64(user+system) / ticks, errors.Join(errUser, errSystem)
}

// weigh reads the memory of a process. The guest's RAM is the mapping that is
// as large as it, the largest that is anonymous.
func weigh(pid int, ram int64) (weight, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return weight{}, err
	}
	w := weight{}
	if w.seconds, err = spent(pid); err != nil {
		return w, err
	}
	isRAM := false
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if from, to, found := strings.Cut(fields[0], "-"); found && len(fields) >= 5 {
			a, errA := strconv.ParseUint(from, 16, 64)
			b, errB := strconv.ParseUint(to, 16, 64)
			if err := errors.Join(errA, errB); err != nil {
				return w, err
			}
			isRAM = len(fields) == 5 && int64(b-a) == ram
			continue
		}
		if fields[0] != "Pss:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return w, err
		}
		if isRAM {
			w.guest += kib << 10
		} else {
			w.rest += kib << 10
		}
	}
	return w, lines.Err()
}

// laden starts a machine with the tiny guest and weighs its QEMU once the guest
// is up.
func laden(ctx context.Context, m qemucmd.Machine, h qemucmd.Host) (w weight, err error) {
	guest, err := tinyguest.Ensure(ctx, tinyguest.Options{})
	if err != nil {
		return w, err
	}
	m.KernelBoot = &qemucmd.KernelBoot{Kernel: guest.BzImage, Initrd: guest.Initrd, Args: tinyguest.CommandLine}
	r, err := launch(ctx, m, h)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	serial, err := net.Dial("unix", m.Serial.Path)
	if err != nil {
		return w, err
	}
	defer serial.Close()
	deadline, _ := ctx.Deadline()
	if err := serial.SetDeadline(deadline); err != nil {
		return w, err
	}
	if _, err := r.Execute(ctx, "cont", nil); err != nil {
		return w, err
	}
	lines := bufio.NewScanner(serial)
	for lines.Scan() {
		if strings.Contains(lines.Text(), tinyguest.Ready) {
			go io.Copy(io.Discard, serial) // an unread port would stop the guest
			return weigh(r.pid, m.Memory.Size)
		}
	}
	return w, fmt.Errorf("the guest did not come up: %w", lines.Err())
}

// weighed are machines from the smallest to one that is full of devices, with
// their files in dir.
func weighed(t fataler, dir string) map[string]qemucmd.Machine {
	out := map[string]qemucmd.Machine{}
	plain := small()
	plain.Memory.Size = 256 << 20
	plain.Monitor.Path = filepath.Join(dir, "monitor")
	plain.Serial = &qemucmd.Socket{Path: filepath.Join(dir, "serial")}
	out["plain"] = plain

	full := plain
	full.Memory.Size = 1 << 30
	full.CPU.Maximum = 8
	full.Firmware = qemucmd.Firmware{Kind: qemucmd.FirmwareUEFI, VarsPath: filepath.Join(dir, "vars")}
	file := realWorld(t, dir).file
	for i := range 4 {
		full.Disks = append(full.Disks, qemucmd.Disk{File: file(fmt.Sprint("disk", i), "qcow2"), Format: "qcow2"})
		full.Networks = append(full.Networks, qemucmd.Network{MAC: qemucmd.StableMAC("x", i), User: &qemucmd.UserNetwork{}})
	}
	full.Outputs = 4
	full.Display = &qemucmd.Display{
		SPICE: &qemucmd.SPICE{Socket: filepath.Join(dir, "spice"), USBRedirects: 4},
		VNC:   &qemucmd.VNC{Socket: filepath.Join(dir, "vnc"), Password: true},
	}
	full.GuestAgent = &qemucmd.Socket{Path: filepath.Join(dir, "qga")}
	out["full"] = full
	return out
}

// TestMachinesStayBelowTheirOverhead weighs QEMU with a guest that is up.
func TestMachinesStayBelowTheirOverhead(t *testing.T) {
	h := realHost(t)
	dir := shortDir(t)
	t.Chdir(dir)
	for name, m := range weighed(t, dir) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			w, err := laden(ctx, m, h)
			if err != nil {
				t.Fatal(err)
			}
			if want := qemucmd.MemoryOverhead(m, h); w.rest > want.Total() || w.guest == 0 {
				t.Errorf("QEMU has %d MiB beside %d of the guest's RAM, more than %d: %+v", w.rest>>20, w.guest>>20, want.Total()>>20, want)
			}
		})
	}
}

// BenchmarkMemoryOverhead shows what QEMU weighs beside what is reserved for it.
func BenchmarkMemoryOverhead(b *testing.B) {
	h, err := probed()
	if err != nil {
		b.Fatalf("%v; run: make deps", err)
	}
	dir, err := os.MkdirTemp("", "q")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b.Chdir(dir)
	for name, m := range weighed(b, dir) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), 3*patience)
				w, err := laden(ctx, m, h)
				cancel()
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(w.rest>>20), "MiB-seen")
				b.ReportMetric(float64(qemucmd.MemoryOverhead(m, h).Total()>>20), "MiB-reserved")
			}
		})
	}
}

// TestMoreNeedsMoreMemory: a machine with a device more reserves no less.
func TestMoreNeedsMoreMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, h := machine(t, imagined()), qemucmd.GenericHost()
		h.KVM = maybe(t, "kvm")
		before := qemucmd.MemoryOverhead(m, h)
		if before.Total() < 100<<20 || before != qemucmd.MemoryOverhead(m, h) {
			t.Fatalf("%+v", before)
		}
		grown := m
		add := rapid.SampledFrom(additions()).Draw(t, "what")
		if add.without != nil {
			add.without(&m)
			before = qemucmd.MemoryOverhead(m, h)
			grown = m
		}
		if add.full != nil && add.full(m) {
			t.Skip("there is no room for another")
		}
		add.with(&grown)
		grown.Memory.Size += rapid.Int64Range(0, 1<<40).Draw(t, "RAM")
		grown.CPU.Maximum += rapid.IntRange(0, 200).Draw(t, "CPUs")
		if after := qemucmd.MemoryOverhead(grown, h); after.Total() < before.Total() {
			t.Fatalf("%+v became %+v", before, after)
		}
	})
}

// TestOverheadOfTypicalMachines pins what is reserved for them.
func TestOverheadOfTypicalMachines(t *testing.T) {
	h := qemucmd.GenericHost()
	server := small()
	server.Firmware = qemucmd.Firmware{Kind: qemucmd.FirmwareUEFI, VarsPath: "/vars"}
	server.Memory.Size = 4 << 30
	server.CPU.Maximum = 4
	server.Disks = []qemucmd.Disk{{Device: "/dev/a"}}
	server.Networks = []qemucmd.Network{{MAC: qemucmd.StableMAC("x", 0), Tap: &qemucmd.TapNetwork{}}}
	desktop := server
	desktop.Display = &qemucmd.Display{SPICE: &qemucmd.SPICE{Port: 5900, USBRedirects: 2}}
	emulated := server
	emulated.Accelerator = qemucmd.AcceleratorTCG
	for _, c := range []struct {
		name string
		m    qemucmd.Machine
		want int64
	}{{"server", server, 167}, {"desktop", desktop, 217}, {"emulated", emulated, 339}} {
		if got := qemucmd.MemoryOverhead(c.m, h).Total() >> 20; got != c.want {
			t.Errorf("%s: %d MiB, want %d", c.name, got, c.want)
		}
	}
}
