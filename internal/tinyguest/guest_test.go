package tinyguest_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
)

// One machine with everything in it: a boot takes longer than all commands
// together.
func TestGuestSeesItsMachine(t *testing.T) {
	dir := t.TempDir()
	disk, disc1, disc2 := filepath.Join(dir, "disk"), filepath.Join(dir, "disc1"), filepath.Join(dir, "disc2")
	extra := filepath.Join(dir, "extra")
	fatVolume(t, extra, "hello.txt", "hello from the host")
	file(t, disk, "from the host", 8<<20)
	file(t, disc1, "first disc", 1<<20)
	file(t, disc2, "second disc", 2<<20)
	socket := filepath.Join(dir, "agent")
	m := startGuest(t, testbin.TinyGuest(t), tinyguest.WordAgent,
		"-smp", "1,maxcpus=2,sockets=2,cores=1,threads=1", "-uuid", "0a1b2c3d-0000-4000-8000-00000000beef",
		"-blockdev", "driver=raw,node-name=disk,file.driver=file,file.filename="+disk,
		"-device", "virtio-blk-pci,drive=disk,serial=disk-serial",
		"-device", "virtio-scsi-pci,id=scsi",
		"-blockdev", "driver=raw,node-name=disc1,read-only=on,file.driver=file,file.filename="+disc1,
		"-blockdev", "driver=raw,node-name=disc2,read-only=on,file.driver=file,file.filename="+disc2,
		"-device", "scsi-cd,id=cd,bus=scsi.0,drive=disc1",
		"-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,mac=52:54:00:12:34:56",
		"-device", "virtio-serial-pci,id=serial",
		"-chardev", "socket,id=agent,path="+socket+",server=on,wait=off",
		"-device", "virtserialport,bus=serial.0,chardev=agent,name="+tinyguest.PortAgent,
		"-chardev", "file,id=plain,path="+filepath.Join(dir, "plain"),
		"-device", "virtserialport,bus=serial.0,chardev=plain,name=plain",
		"-device", "virtio-balloon-pci",
		"-device", "pcie-root-port,id=rp0",
		"-blockdev", "driver=raw,node-name=extra,file.driver=file,file.filename="+extra,
	)
	m.ready(t)

	t.Run("facts", func(t *testing.T) {
		for _, fact := range []string{
			", 1 CPU, ", "\nvmop-guest: machine 0a1b2c3d-0000-4000-8000-00000000beef\n",
			"\nvmop-guest: disk vda 8388608 bytes, serial disk-serial\n", "\nvmop-guest: network eth0 52:54:00:12:34:56\n",
		} {
			if !strings.Contains(m.Transcript(), fact) {
				t.Errorf("the guest's facts lack %q:\n%s", fact, m.Transcript())
			}
		}
	})
	t.Run("machine", func(t *testing.T) {
		m.answer(t, "uuid", "0a1b2c3d-0000-4000-8000-00000000beef")
		m.answer(t, "mac", "eth0 52:54:00:12:34:56")
		m.answer(t, "tpm", "no tpm")
		m.answer(t, "efi", "no efi")
		m.answer(t, "cat /sys/class/dmi/id/sys_vendor", "QEMU")
		m.answer(t, "ls /sys/class/virtio-ports", "vport3p1\nvport3p2")
		m.answer(t, "ports", "vport3p1 "+tinyguest.PortAgent+"\nvport3p2 plain")
		for command, want := range map[string]string{
			"help": "poweroff", "dmi": "\nsys_vendor QEMU", "dmesg 5": "<", "mem": "MemTotal ", "dirty 4": "4 MiB written",
		} {
			if got, err := m.Command(m.ctx, command); err != nil || !strings.Contains(got, want) {
				t.Errorf("%s: %v, %q lacks %q", command, err, got, want)
			}
		}
	})
	t.Run("bytes", func(t *testing.T) {
		m.answer(t, "store /text 61626364650a", "")
		m.answer(t, "cat /text", "abcde")
		m.answer(t, "hex /text", "61626364650a")
		m.answer(t, "ask /dev/zero 00", strings.Repeat("00", 4096))
		m.refuse(t, "store /text 6", "error: /text: invalid argument")
		m.refuse(t, "ask /dev/zero 0g", "error: /dev/zero: invalid argument")
		m.refuse(t, "hex /nowhere", "error: /nowhere: no such file")
	})
	t.Run("errors", func(t *testing.T) {
		m.refuse(t, "frobnicate", "error: frobnicate: not a command, try help")
		m.refuse(t, "cat /nowhere", "error: /nowhere: no such file")
		m.refuse(t, "read vdz 0 1", "error: vdz: no such file")
		m.refuse(t, "read vda x 1", "error: read: invalid argument")
		m.refuse(t, "write sr0 0 x", "error: sr0: read-only")
		m.refuse(t, "online 7", "error: cpu: no such file")
		m.refuse(t, "mount vda /mnt", "error: vda: invalid argument")
	})
	t.Run("terminal", func(t *testing.T) {
		// What a person's keys send: backspace twice, Ctrl-U, Ctrl-C, arrow up.
		m.answer(t, "echo one", "one")
		for _, keys := range []struct{ keys, echo string }{
			{"echo twx\x7f\x7f\x7ftwo\r", "\ntwo\n> "},
			{"rubbish\x15echo three\r", "\nthree\n> "},
			{"never executed\x03", "^C\n> "},
			{"\x1b[A\r", "\nthree\n> "},
			{"echo four\r\n", "\nfour\n> "},
		} {
			if err := m.Type(keys.keys); err != nil {
				t.Fatal(err)
			}
			m.expect(t, keys.echo)
		}
	})
	t.Run("disk", func(t *testing.T) {
		m.answer(t, "read vda 5 8", "the host")
		m.answer(t, "write vda 4096 from the guest", "14 bytes written")
		m.answer(t, "read /dev/vda 4095 16", `\x00from the guest\x00`)
		f, err := os.Open(disk)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got := make([]byte, 14)
		if _, err := f.ReadAt(got, 4096); err != nil || string(got) != "from the guest" {
			t.Errorf("on the host the disk has %q, %v", got, err)
		}
	})
	t.Run("disc", func(t *testing.T) {
		m.answer(t, "read sr0 0 10", "first disc")
		m.answer(t, "tray", "disc")
		m.answer(t, "lock", "")
		m.answer(t, "unlock", "")
		m.answer(t, "eject", "")
		m.qmpEvent(t, "DEVICE_TRAY_MOVED")
		m.answer(t, "tray", "open")
		m.answer(t, "close", "")
		m.qmpEvent(t, "DEVICE_TRAY_MOVED")
		m.qmpDo(t, "blockdev-open-tray", `{"id":"cd"}`)
		m.qmpDo(t, "blockdev-remove-medium", `{"id":"cd"}`)
		m.qmpDo(t, "blockdev-insert-medium", `{"id":"cd","node-name":"disc2"}`)
		m.qmpDo(t, "blockdev-close-tray", `{"id":"cd"}`)
		m.answer(t, "read sr0 0 11", "second disc")
		m.answer(t, "disks", "sr0 2097152 bytes, read-only\nvda 8388608 bytes, serial disk-serial")
	})
	t.Run("processors", func(t *testing.T) {
		m.answer(t, "cpus", "online 0\npresent 0\npossible 0-1")
		m.qmpDo(t, "device_add", `{"driver":"qemu64-x86_64-cpu","id":"cpu1","socket-id":1,"core-id":0,"thread-id":0}`)
		m.expect(t, "vmop-guest: cpu 1 online\n> ")
		m.answer(t, "cpus", "online 0-1\npresent 0-1\npossible 0-1")
		m.answer(t, "offline 1", "")
		m.expect(t, "vmop-guest: cpu 1 offline\n> ")
		m.answer(t, "online 1", "")
		m.expect(t, "vmop-guest: cpu 1 online\n> ")
		// Not removed again: under software emulation QEMU 7.2 then aborts with a corrupted heap ("double free") as
		// soon as a PCI device is added or removed.
	})
	t.Run("hotplug", func(t *testing.T) {
		m.qmpDo(t, "device_add", `{"driver":"virtio-blk-pci","id":"extra","drive":"extra","bus":"rp0","serial":"extra"}`)
		m.expect(t, "vmop-guest: disk vdb added\n> ")
		// The kernel calls modprobe for the file system and for its alphabet.
		m.answer(t, "mount vdb /mnt", "vfat")
		m.answer(t, "ls /mnt", "hello.txt")
		m.answer(t, "cat /mnt/hello.txt", "hello from the host")
		m.answer(t, "umount /mnt", "")
		m.qmpDo(t, "device_del", `{"id":"extra"}`)
		m.expect(t, "vmop-guest: disk vdb removed\n> ")
		m.qmpDo(t, "balloon", `{"value":117440512}`)
		m.qmpEvent(t, "BALLOON_CHANGE")
	})
	t.Run("ports", func(t *testing.T) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(conn)
		hear := func(want string) {
			t.Helper()
			if got, err := lines.ReadString('\n'); err != nil || got != want+"\n" {
				t.Fatalf("agent says %q, %v; want %q", got, err, want)
			}
		}
		hear("220 vmop tiny guest")
		for _, c := range []struct{ say, hear string }{
			{"login fred", "201 fred is logged in"}, {"logout", "202 nobody is logged in"}, {"how are you", "500 not understood: how are you"},
		} {
			fmt.Fprintln(conn, c.say)
			hear(c.hear)
			m.expect(t, "vmop-guest: agent received: "+c.say+"\n> ")
		}
		m.answer(t, "port "+tinyguest.PortAgent+" 240 good bye", "")
		hear("240 good bye")
		m.answer(t, "port plain a line for the host", "")
		m.refuse(t, "port nowhere x", "error: nowhere: no such file")
	})
	t.Run("power button", func(t *testing.T) {
		m.qmpDo(t, "system_powerdown", "{}")
		m.expect(t, "vmop-guest: power button, shutting down\n")
		m.gone(t)
		if got, err := os.ReadFile(filepath.Join(dir, "plain")); err != nil || string(got) != "a line for the host\n" {
			t.Errorf("port plain got %q, %v", got, err)
		}
	})
}

// The standard machine's CD drive is behind AHCI, which only the generic kernel
// drives.
func TestGenericGuestSeesAHCI(t *testing.T) {
	dir := t.TempDir()
	disc := filepath.Join(dir, "disc")
	file(t, disc, "a disc", 1<<20)
	m := startGuest(t, testbin.GenericTinyGuest(t), "",
		"-blockdev", "driver=raw,node-name=disc,read-only=on,file.driver=file,file.filename="+disc,
		"-device", "ide-cd,id=cd,bus=ide.0,drive=disc")
	m.ready(t)
	m.answer(t, "disks", "sr0 1048576 bytes, read-only")
	m.answer(t, "read sr0 0 6", "a disc")
	m.answer(t, "eject", "")
	m.qmpEvent(t, "DEVICE_TRAY_MOVED")
	m.answer(t, "tray", "open")
	if err := m.Send("poweroff"); err != nil {
		t.Fatal(err)
	}
	m.gone(t)
}

func TestGuestIgnoresPowerButton(t *testing.T) {
	m := startGuest(t, testbin.TinyGuest(t), tinyguest.WordIgnorePowerButton)
	m.ready(t)
	m.qmpDo(t, "system_powerdown", "{}")
	m.expect(t, "vmop-guest: power button, ignored\n> ")
	m.answer(t, "echo still here", "still here")
	if err := m.Send("reboot"); err != nil {
		t.Fatal(err)
	}
	m.qmpEvent(t, "RESET")
	m.ready(t)
	if err := m.Send("crash"); err != nil {
		t.Fatal(err)
	}
	m.expect(t, "Kernel panic")
	m.qmpEvent(t, "RESET")
	m.ready(t)
	if err := m.Send("poweroff"); err != nil {
		t.Fatal(err)
	}
	m.expect(t, "vmop-guest: powering off\n")
	m.gone(t)
}

func TestGuestAgentShutsDown(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "qga")
	m := startGuest(t, testbin.TinyGuest(t), tinyguest.WordGuestAgent,
		"-device", "virtio-serial-pci",
		"-chardev", "socket,id=qga,path="+socket+",server=on,wait=off",
		"-device", "virtserialport,chardev=qga,name="+tinyguest.PortGuestAgent)
	m.ready(t)
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(conn)
	for _, c := range []struct{ ask, want string }{
		{`{"execute":"guest-sync","arguments":{"id":4711}}`, `{"return": 4711}`},
		{`{"execute":"guest-sync-delimited","arguments":{"id":12}}`, "\xff" + `{"return": 12}`},
		{`{"execute":"guest-ping"}`, `{"return": {}}`},
		{`{"execute":"guest-get-osinfo"}`, `{"return": {"id": "vmop-guest", "name": "vmop tiny guest", "pretty-name": "vmop tiny guest", "machine": "x86_64"}}`},
		{`{"execute":"guest-exec"}`, `{"error": {"class": "CommandNotFound", "desc": "not a command of the tiny guest"}}`},
	} {
		fmt.Fprintln(conn, c.ask)
		if got, err := lines.ReadString('\n'); err != nil || got != c.want+"\n" {
			t.Fatalf("%s: got %q, %v; want %q", c.ask, got, err, c.want)
		}
	}
	fmt.Fprintln(conn, `{"execute":"guest-shutdown"}`)
	m.expect(t, "vmop-guest: guest agent, shutting down\n")
	m.gone(t)
}

// UEFI firmware and a TPM need the kernel as the distribution packs it.
func TestGuestBootsWithFirmwareAndTPM(t *testing.T) {
	firmware, swtpm := testbin.UEFI(t), testbin.Find(t, "swtpm")
	dir := t.TempDir()
	vars, err := os.ReadFile(firmware.Vars)
	if err != nil {
		t.Fatal(err)
	}
	varsPath, socket := filepath.Join(dir, "vars"), filepath.Join(dir, "tpm")
	file(t, varsPath, string(vars), int64(len(vars)))

	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listening, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	_ = listener.Close()
	tpm := exec.Command(swtpm, "socket", "--tpm2", "--tpmstate", "dir="+dir, "--ctrl", "type=unixio,fd=3", "--terminate")
	tpm.ExtraFiles, tpm.Stderr = []*os.File{listening}, os.Stderr
	if err := tpm.Start(); err != nil {
		t.Fatal(err)
	}
	_ = listening.Close()
	t.Cleanup(func() {
		_ = tpm.Process.Kill()
		_ = tpm.Wait()
	})

	guest := testbin.TinyGuest(t)
	guest.Kernel = guest.BzImage
	m := startGuest(t, guest, "",
		"-m", "256", // the firmware crashes when it has half of it
		"-drive", "if=pflash,format=raw,unit=0,readonly=on,file="+firmware.Code,
		"-drive", "if=pflash,format=raw,unit=1,file="+varsPath,
		"-chardev", "socket,id=tpm,path="+socket, "-tpmdev", "emulator,id=tpm0,chardev=tpm", "-device", "tpm-crb,tpmdev=tpm0")
	m.ready(t)
	m.answer(t, "efi", "efi, secure boot off")
	m.answer(t, "tpm", "tpm0 version 2")
	if err := m.Send("poweroff"); err != nil {
		t.Fatal(err)
	}
	m.gone(t)
}
