package hostprobe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/conditions"
)

// kvmTimeout bounds a guest of a few instructions. QEMU needs some 50 milliseconds to start; where
// KVM does not work, the guest may hang for ever, using a whole CPU.
const kvmTimeout = time.Second

// checkKVM checks that a KVM guest really executes: on hosts that are virtual machines themselves,
// /dev/kvm may open while guests hang. On one such host, without VMX and SVM, firmware executed
// with some CPU models but no kernel booted; so the processor's flags are checked first, and the
// guest has the CPU model "host", as real guests do.
func checkKVM(ctx context.Context, qemu string, c cache) KVM {
	device, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return KVM{Reason: whyClosed(err), Message: refusal("/dev/kvm", err)}
	}
	if err := device.Close(); err != nil {
		return KVM{Reason: conditions.ReasonKVMFails, Message: err.Error()}
	}
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return KVM{Reason: conditions.ReasonKVMFails, Message: err.Error()}
	}
	if !virtualizes(string(cpuinfo)) {
		return KVM{Reason: conditions.ReasonNoVirtualization, Message: "/dev/kvm exists, but the processor offers neither VMX nor SVM"}
	}
	if c.kvmSeen() {
		return KVM{Works: true}
	}
	if err := runGuest(ctx, qemu, kvmTimeout, "-accel", "kvm", "-cpu", "host"); err != nil {
		return KVM{Reason: conditions.ReasonKVMFails, Message: err.Error()}
	}
	return KVM{Works: true}
}

// whyClosed returns the reason why the device cannot be opened. A device node without its driver,
// as in a pod, counts as no device.
func whyClosed(err error) string {
	switch {
	case errors.Is(err, os.ErrPermission):
		return conditions.ReasonKVMNotPermitted
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return conditions.ReasonNoKVMDevice
	}
	return conditions.ReasonKVMFails
}

// refusal explains why a device cannot be opened, and names the group that may: its number differs
// between distributions.
func refusal(device string, err error) string {
	info, statErr := os.Stat(device)
	if !errors.Is(err, os.ErrPermission) || statErr != nil {
		return err.Error()
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm()&0o060 != 0o060 {
		return err.Error()
	}
	return fmt.Sprintf("%v: it is for group %d of this node (mode %04o), which this process is not in; in a cluster the operator's setting VMOP_DEVICE_GROUPS=%[2]d puts machines' pods into it",
		err, stat.Gid, info.Mode().Perm())
}

func virtualizes(cpuinfo string) bool {
	for line := range strings.Lines(cpuinfo) {
		key, flags, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) != "flags" {
			continue
		}
		for flag := range strings.FieldsSeq(flags) {
			if flag == "vmx" || flag == "svm" {
				return true
			}
		}
		return false // all processors are alike
	}
	return false
}

func runGuest(ctx context.Context, qemu string, timeout time.Duration, accel ...string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rom, err := memoryFile("vmop-rom", guestROM())
	if err != nil {
		return err
	}
	run, err := start(ctx, qemu, []*os.File{rom}, append([]string{
		"-machine", "q35", "-m", "16", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-bios", "/proc/self/fd/3",
		"-chardev", "stdio,id=out,signal=off", "-device", "isa-serial,chardev=out",
	}, accel...)...)
	closeErr := rom.Close()
	if err != nil {
		return err
	}
	select {
	case <-run.stdout.seen:
		cancel()
		<-run.done
		return closeErr
	case <-run.done:
	}
	// The proof may have arrived just before the end.
	select {
	case <-run.stdout.seen:
		return closeErr
	default:
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("a guest that was started executed nothing within %v", timeout)
	}
	return errors.Join(ctx.Err(), fmt.Errorf("a guest that was started did not execute: %w", run.end(0)))
}

func memoryFile(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(content); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// guestROM is 64 KiB of firmware, QEMU's minimum. In real mode it writes the proof to the first
// serial port, then resets by the chipset's reset register, which ends a QEMU that is not to
// reboot.
func guestROM() []byte {
	const (
		size  = 64 << 10
		entry = 0xff00 // of the program
		reset = 0xfff0 // of the first instruction that a processor executes
	)
	rom := make([]byte, size)
	code := []byte{0xba, 0xf8, 0x03} // mov dx, 0x3f8
	for _, c := range []byte(proof + "\n") {
		code = append(code,
			0xb0, c, // mov al, c
			0xee) // out dx, al
	}
	code = append(code,
		0xba, 0xf9, 0x0c, // mov dx, 0xcf9
		0xb0, 0x06, // mov al, 6
		0xee,       // out dx, al
		0xf4,       // hlt
		0xeb, 0xfd) // jmp back to hlt
	copy(rom[entry:], code)
	distance := uint16(entry - (reset + 3) + 1<<16)
	copy(rom[reset:], []byte{0xe9, byte(distance), byte(distance >> 8)}) // jmp entry
	return rom
}
