package qemucmd_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// A machine that is taken over boots from the disk that it booted from: VM-Operator
// gives no boot index, and its firmware knows disks by their PCI addresses. With
// others it forgets them, and tries the network and its shell before what it finds
// anew.
func TestAMachineThatIsTakenOverBootsItsDisk(t *testing.T) {
	dir, firmware := t.TempDir(), testbin.UEFI(t)
	disks := []string{bootDisk(t, dir, 'A'), bootDisk(t, dir, 'B')}
	vars := filepath.Join(dir, "fw-vars.fd")
	template, err := os.ReadFile(firmware.Vars)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vars, template, 0o600); err != nil {
		t.Fatal(err)
	}
	first := boots(t, formerly(firmware.Code, vars, disks))
	if first.disk != "A" {
		t.Fatalf("VM-Operator's machine boots %+v", first)
	}

	h := realHost(t)
	m := qemucmd.Machine{
		Name: "former", UUID: "6d8f6c2a-5e0b-4b52-9d5a-0f6d3b0e3c11", Accelerator: qemucmd.AcceleratorTCG, AddressMap: qemucmd.NewestAddressMap,
		FirstDiskSlot: qemucmd.DiskSlotFor(1, len(disks)), CPU: qemucmd.CPU{Model: "max", Maximum: 1}, Memory: qemucmd.Memory{Size: 256 << 20},
		Firmware: qemucmd.Firmware{Kind: qemucmd.FirmwareUEFI, Code: firmware.Code, VarsPath: vars},
		Networks: []qemucmd.Network{{MAC: "52:54:00:12:34:56", User: &qemucmd.UserNetwork{}}},
		CDDrives: []qemucmd.CDDrive{{}}, Monitor: qemucmd.Socket{Path: filepath.Join(dir, "qmp.sock")},
	}
	for _, d := range disks {
		m.Disks = append(m.Disks, qemucmd.Disk{File: d})
	}
	cmd, err := qemucmd.Build(m, h)
	if err != nil {
		t.Fatal(err)
	}
	// The guest runs at once, and its serial port is the standard output.
	var args []string
	for _, a := range cmd.Args() {
		if a != "-S" {
			args = append(args, strings.Replace(a, "null,id=charserial0", "stdio,signal=off,id=charserial0", 1))
		}
	}
	if now := boots(t, args); now != first {
		t.Errorf("it boots %+v, and VM-Operator's boots %+v", now, first)
	}
}

// formerly are the arguments of VM-Operator's machine that the firmware notices.
func formerly(code, vars string, disks []string) []string {
	args := strings.Fields("-no-user-config -display none -machine pc-q35-7.2,usb=off,vmport=off,pflash0=rom,pflash1=eeprom,hpet=off -m 256 -cpu max -accel tcg " +
		"-device virtio-balloon-pci,id=balloon0 -device intel-iommu,device-iotlb=on -serial stdio -device virtio-serial-pci,id=virtio-serial0 " +
		"-device qemu-xhci,p2=15,p3=15,id=usb -device usb-tablet -object rng-random,id=objrng0,filename=/dev/urandom -device virtio-rng-pci,rng=objrng0,id=rng0 " +
		"-device virtio-vga,id=video0,max_outputs=1 -device ich9-intel-hda,id=sound0 -netdev user,id=hostnet0 -device virtio-net,netdev=hostnet0 " +
		"-drive id=drive-cdrom0,if=none,media=cdrom,readonly=on -device ide-cd,id=cd0,bus=ide.0,drive=drive-cdrom0")
	node := func(name, file string, readOnly bool) {
		args = append(args, "-blockdev", fmt.Sprintf(`{"node-name":%q,"driver":"raw","read-only":%v,"file":{"driver":"file","filename":%q}}`, name, readOnly, file))
	}
	node("rom", code, true)
	node("eeprom", vars, false)
	for i, d := range disks {
		node("disk"+strconv.Itoa(i), d, false)
		args = append(args, "-device", "virtio-blk-pci,drive=disk"+strconv.Itoa(i))
	}
	return args
}

// booted is what the firmware says of the program that it starts, and what that says.
type booted struct{ option, disk string }

// boots starts QEMU and waits for the boot program of a disk.
func boots(t *testing.T, args []string) booted {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, testbin.Find(t, testbin.QEMU), args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	buffer := make([]byte, 4096)
	for !bytes.Contains(text, []byte("<A>")) && !bytes.Contains(text, []byte("<B>")) && !bytes.Contains(text, []byte("Shell>")) {
		n, err := out.Read(buffer)
		text = append(text, buffer[:n]...)
		if err != nil {
			if err != io.EOF {
				t.Logf("its output: %v", err)
			}
			break
		}
	}
	cancel()
	_ = cmd.Wait() // which was killed
	said := string(text)
	_, disk, _ := strings.Cut(said, "<")
	_, option, _ := strings.Cut(said, "BdsDxe: starting ")
	option, _, _ = strings.Cut(option, "\r")
	if len(disk) == 0 || option == "" {
		t.Fatalf("nothing was booted: %q, %s", said, problems.String())
	}
	return booted{option, disk[:1]}
}

// bootDisk makes a disk that UEFI boots, with a program that prints a letter on the
// serial port and stays.
func bootDisk(t *testing.T, dir string, letter byte) string {
	t.Helper()
	var code []byte
	for _, c := range []byte{'<', letter, '>', '\n'} {
		code = append(code, 0x66, 0xba, 0xf8, 0x03, 0xb0, c, 0xee) // mov dx, 0x3f8; mov al, c; out dx, al
	}
	code = append(code, 0xf4, 0xeb, 0xfd) // hlt; jmp to it
	tree := filepath.Join(dir, string(letter))
	if err := os.MkdirAll(filepath.Join(tree, "EFI", "BOOT"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "EFI", "BOOT", "BOOTX64.EFI"), program(code), 0o600); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(dir, string(letter)+".img")
	if out, err := exec.Command(testbin.Find(t, "qemu-img"), "convert", "-f", "vvfat", "-O", "raw", "fat:"+tree, disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return disk
}

// program is a UEFI application (PE32+) with one section, which needs no relocation.
func program(code []byte) []byte {
	const page, sector = 0x1000, 512
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&b, binary.LittleEndian, v) // to memory
		}
	}
	put([2]byte{'M', 'Z'}, [58]byte{}, uint32(64), [4]byte{'P', 'E'})
	put(uint16(0x8664), uint16(1), [12]byte{}, uint16(240), uint16(0x22)) // x86-64, one section; executable
	put(uint16(0x20b), uint16(0), uint32(sector), [8]byte{}, uint32(page), uint32(page))
	put(uint64(0), uint32(page), uint32(sector), [16]byte{}, uint32(2*page), uint32(sector), uint32(0), uint16(10), uint16(0)) // an EFI application
	put(uint64(1<<20), uint64(page), uint64(1<<20), uint64(page), uint32(0), uint32(16), [128]byte{})
	put([8]byte{'.', 't', 'e', 'x', 't'}, uint32(sector), uint32(page), uint32(sector), uint32(sector), [12]byte{}, uint32(0x60000020))
	image := make([]byte, 2*sector)
	copy(image, b.Bytes())
	copy(image[sector:], code)
	return image
}

// The disks of such a machine follow its network cards, as QEMU put them there, and
// a card that is added takes no slot of theirs.
func TestFirstDiskSlot(t *testing.T) {
	for _, c := range []struct{ nics, disks, want int }{{1, 2, 8}, {2, 1, 9}, {1, 20, 8}, {1, 21, 0}, {0, 1, 0}, {12, 3, 0x13}, {21, 0, 0}} {
		if got := qemucmd.DiskSlotFor(c.nics, c.disks); got != c.want {
			t.Errorf("%d network cards and %d disks: slot %#x, want %#x", c.nics, c.disks, got, c.want)
		}
	}
	m := qemucmd.Machine{Name: "a", Firmware: qemucmd.Firmware{Kind: qemucmd.FirmwareBIOS}, UUID: "6d8f6c2a-5e0b-4b52-9d5a-0f6d3b0e3c11", AddressMap: 2, FirstDiskSlot: 8, Memory: qemucmd.Memory{Size: 1 << 30},
		Monitor: qemucmd.Socket{Path: "/m"}, Disks: []qemucmd.Disk{{File: "/a"}, {File: "/b"}}}
	for i := range 2 {
		m.Networks = append(m.Networks, qemucmd.Network{MAC: fmt.Sprintf("52:54:00:12:34:%02x", i), User: &qemucmd.UserNetwork{}})
	}
	args := strings.Join(mustBuild(t, m, qemucmd.GenericHost()).Args(), "\n")
	for id, addr := range map[string]string{qemucmd.NICID(0): "0x7", qemucmd.NICID(1): "0x7.0x1", qemucmd.DiskID(0): "0x8", qemucmd.DiskID(1): "0x9"} {
		if !strings.Contains(args, fmt.Sprintf(`"id":%q,"bus":"pcie.0","addr":%q`, id, addr)) {
			t.Errorf("%s is not at %s: %s", id, addr, args)
		}
	}
	for _, slot := range []int{-1, 7, 0x1c} {
		m.FirstDiskSlot = slot
		if _, err := qemucmd.Build(m, qemucmd.GenericHost()); err == nil || !strings.Contains(err.Error(), "firstDiskSlot") {
			t.Errorf("slot %d: %v", slot, err)
		}
	}
}
