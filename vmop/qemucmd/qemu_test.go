package qemucmd_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"pgregory.net/rapid"
)

// machines is the number of generated machines that the real QEMU gets.
var machines = flag.Int("machines", 15, "number of generated machines to start in QEMU")

// patience is for things that take some 50 milliseconds on an idle host.
const patience = 3 * time.Minute

// probed is this host, without KVM: the tests are the same everywhere.
var probed = sync.OnceValues(func() (qemucmd.Host, error) {
	r, err := hostprobe.Probe(context.Background(), hostprobe.Options{})
	r.Host.KVM = false
	return r.Host, err
})

func realHost(t *testing.T) qemucmd.Host {
	t.Helper()
	h, err := probed()
	if err != nil {
		t.Fatalf("%v; run: make deps", err)
	}
	if h.SWTPM == "" {
		t.Fatal("there is no swtpm; run: make deps")
	}
	return h
}

// realWorld makes the files of generated machines below dir.
func realWorld(t fataler, dir string) world {
	return world{dir: dir, real: true, file: func(name string, format qemucmd.DiskFormat) string {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := makeFile(p, format); err != nil {
			t.Fatalf("%v", err)
		}
		return p
	}}
}

// makeFile makes a file that is good enough for QEMU to open.
func makeFile(path string, format qemucmd.DiskFormat) error {
	switch format {
	case qemucmd.DiskFormatQCOW2:
		// The target of qemu-img is an option string of its own: the path must not
		// be read as one.
		if out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "./x.qcow2", "1M").CombinedOutput(); err != nil {
			return fmt.Errorf("qemu-img: %w: %s; run: make deps", err, out)
		}
		return os.Rename("./x.qcow2", path)
	case "kernel":
		// The smallest thing that QEMU takes for a kernel: a boot sector with the
		// header of the boot protocol.
		kernel := make([]byte, 4096)
		copy(kernel[0x1f1:], []byte{1})
		copy(kernel[0x1fe:], []byte{0x55, 0xaa})
		copy(kernel[0x202:], "HdrS")
		copy(kernel[0x206:], []byte{0x00, 0x02})
		return os.WriteFile(path, kernel, 0o600)
	case "vars":
		return nil // prepare copies them
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(1<<20), f.Close())
}

// running is a QEMU that runs a command.
type running struct {
	*qmp.Client
	pid  int
	stop func() error
}

// launch does what a caller of qemucmd has to do before QEMU can start, and
// starts it. The monitor is a listening socket in descriptor 3.
func launch(ctx context.Context, m qemucmd.Machine, h qemucmd.Host) (running, error) {
	var r running
	m.Monitor.FD = 3
	cmd, err := qemucmd.Build(m, h)
	if err != nil {
		return r, err
	}
	for _, f := range cmd.Files {
		if f.CopyFrom == "" {
			continue
		}
		if data, err := os.ReadFile(f.CopyFrom); err != nil {
			return r, err
		} else if err := os.WriteFile(f.Path, data, 0o600); err != nil {
			return r, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: m.Monitor.Path, Net: "unix"})
	if err != nil {
		return r, err
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	monitor, err := l.File()
	if err != nil {
		return r, err
	}
	defer monitor.Close()

	// Children end in the order of the list, and all of them: QEMU by itself, or
	// because the test is over; the helpers with their client.
	var children []*exec.Cmd
	kill := func() error {
		var errs []error
		for _, c := range children {
			errs = append(errs, c.Process.Kill(), c.Wait())
		}
		return errors.Join(errs...)
	}
	for _, helper := range cmd.Helpers {
		if err := os.MkdirAll(helper.StateDir, 0o700); err != nil {
			return r, errors.Join(err, kill())
		}
		p := exec.CommandContext(ctx, helper.Executable, helper.Args...)
		if err := p.Start(); err != nil {
			return r, errors.Join(err, kill())
		}
		children = append(children, p)
		if err := await(ctx, helper.Socket); err != nil {
			return r, errors.Join(err, kill())
		}
	}
	var stderr strings.Builder
	qemu := exec.CommandContext(ctx, cmd.Executable, cmd.Args()...)
	qemu.Stderr = &stderr
	qemu.ExtraFiles = []*os.File{monitor}
	if err := qemu.Start(); err != nil {
		return r, errors.Join(err, kill())
	}
	children = append([]*exec.Cmd{qemu}, children...)
	// Nobody else listens: when QEMU fails to start, the connection ends.
	if err := errors.Join(l.Close(), monitor.Close()); err != nil {
		return r, errors.Join(err, kill())
	}
	r.Client, err = qmp.Dial(ctx, m.Monitor.Path, qmp.Options{})
	if err != nil {
		err = errors.Join(err, kill())
		return r, fmt.Errorf("%w\n%s\n%s", err, stderr.String(), cmd.Shell())
	}
	r.pid = qemu.Process.Pid
	r.stop = func() error {
		_, err := r.Execute(ctx, "quit", nil)
		errs := []error{err, r.Close()}
		for _, c := range children {
			if err := c.Wait(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", c.Path, err))
			}
		}
		var said strings.Builder
		for line := range strings.Lines(stderr.String()) {
			if !strings.Contains(line, "info: QEMU waiting for connection on: ") { // of its monitor's client
				said.WriteString(line)
			}
		}
		// QEMU tells AMD guests about hyperthreads in a way of its own.
		if s := said.String(); s != "" && !strings.Contains(s, "topoext") {
			errs = append(errs, fmt.Errorf("qemu is not content: %s", s))
		}
		return errors.Join(errs...)
	}
	return r, nil
}

// await waits until a socket exists.
func await(ctx context.Context, socket string) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(socket); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", socket, ctx.Err())
		case <-tick.C:
		}
	}
}

// ask executes a command and decodes its reply.
func (r running) ask(ctx context.Context, command string, args, result any) error {
	reply, err := r.Execute(ctx, command, args)
	if err != nil {
		return err
	}
	return json.Unmarshal(reply, result)
}

// property of a device in the running machine.
func (r running) property(ctx context.Context, device, name string) (any, error) {
	var v any
	err := r.ask(ctx, "qom-get", map[string]string{"path": "/machine/peripheral/" + device, "property": name}, &v)
	return v, err
}

// checkRunning starts a machine and asks QEMU what it understood.
func checkRunning(ctx context.Context, m qemucmd.Machine, h qemucmd.Host) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := launch(ctx, m, h)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()

	var errs []error
	expect := func(what string, want, got any, err error) {
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			errs = append(errs, fmt.Errorf("%s: %w%s", what, err, diff))
		}
	}
	var name struct{ Name string }
	expect("name", nil, nil, r.ask(ctx, "query-name", nil, &name))
	expect("name", m.Name, name.Name, nil)
	var uuid struct{ UUID string }
	expect("uuid", nil, nil, r.ask(ctx, "query-uuid", nil, &uuid))
	expect("uuid", m.UUID, uuid.UUID, nil)
	var status struct{ Status string }
	expect("status", nil, nil, r.ask(ctx, "query-status", nil, &status))
	expect("status", "prelaunch", status.Status, nil)

	var nodes []struct {
		Node string `json:"node-name"`
		File string `json:"file"`
		RO   bool   `json:"ro"`
		Drv  string `json:"drv"`
	}
	expect("nodes", nil, nil, r.ask(ctx, "query-named-block-nodes", map[string]bool{"flat": true}, &nodes))
	files := map[string]string{}
	for _, n := range nodes {
		files[n.Node] = fmt.Sprint(n.Drv, " ", n.File, " read-only=", n.RO)
	}
	want := map[string]string{}
	node := func(name, driver, file string, readOnly bool) {
		want[name] = fmt.Sprint(driver, " ", file, " read-only=", readOnly)
	}
	for i, d := range m.Disks {
		format := d.Format
		if format == "" {
			format = "raw"
		}
		node(fmt.Sprintf("drive-%d-host-resource", i), "file", d.File, false)
		node(fmt.Sprintf("drive-%d-backend", i), string(format), d.File, false)
		if d.Serial != "" {
			got, err := r.property(ctx, fmt.Sprintf("disk%d", i), "serial")
			expect("serial", any(d.Serial), got, err)
		}
	}
	for i, c := range m.CDDrives {
		if c.Image != "" {
			node(fmt.Sprintf("cd%d-file", i), "file", c.Image, true)
			node(fmt.Sprintf("cd%d-backend", i), "raw", c.Image, true)
		}
	}
	if m.Seed != nil {
		node("seed-host-resource", "file", m.Seed.File, true)
		node("seed-backend", "raw", m.Seed.File, true)
	}
	if m.AnswerCD != nil {
		node("answers-file", "file", m.AnswerCD.File, true)
		node("answers-backend", "raw", m.AnswerCD.File, true)
	}
	if m.Firmware.Kind != qemucmd.FirmwareBIOS {
		node("fw-eeprom-file", "file", m.Firmware.VarsPath, false)
		node("fw-eeprom-device", "raw", m.Firmware.VarsPath, false)
	}
	for name := range files {
		if strings.HasPrefix(name, "fw-rom-") {
			want[name] = files[name] // the host's
		}
	}
	expect("block nodes", want, files, nil)

	var chardevs []struct{ Label, Filename string }
	expect("chardevs", nil, nil, r.ask(ctx, "query-chardev", nil, &chardevs))
	for label, s := range map[string]*qemucmd.Socket{
		"charserial0": m.Serial, "guest-agent-socket": m.GuestAgent, "vmop-agent-socket": m.VMOPAgent, "chartools": m.ToolMonitor,
	} {
		if s == nil {
			continue
		}
		i := slices.IndexFunc(chardevs, func(c struct{ Label, Filename string }) bool { return c.Label == label })
		got := ""
		if i >= 0 {
			got = chardevs[i].Filename
		}
		expect(label, "disconnected:unix:"+s.Path+",server=on", got, nil)
	}
	for i, n := range m.Networks {
		got, err := r.property(ctx, fmt.Sprintf("net%d", i), "mac")
		expect("mac", any(n.MAC), got, err)
	}
	if k := m.KernelBoot; k != nil {
		for property, want := range map[string]string{"kernel": k.Kernel, "initrd": k.Initrd, "append": k.Args} {
			var got string
			err := r.ask(ctx, "qom-get", map[string]string{"path": "/machine", "property": property}, &got)
			expect(property, want, got, err)
		}
	}
	var cpus []json.RawMessage
	expect("cpus", nil, nil, r.ask(ctx, "query-hotpluggable-cpus", nil, &cpus))
	if m.CPU.Maximum != 0 {
		expect("cpus", m.CPU.Maximum, len(cpus), nil)
	}
	var memory struct {
		Base int64 `json:"base-memory"`
	}
	expect("memory", nil, nil, r.ask(ctx, "query-memory-size-summary", nil, &memory))
	if memory.Base < m.Memory.Size || memory.Base-m.Memory.Size >= 1<<20 {
		errs = append(errs, fmt.Errorf("memory: %d for %d", memory.Base, m.Memory.Size))
	}
	return errors.Join(errs...)
}

// TestQEMUAcceptsEveryMachine starts generated machines, and asks QEMU back for
// every text that has characters with a meaning in them.
func TestQEMUAcceptsEveryMachine(t *testing.T) {
	h := realHost(t)
	if err := flag.Set("rapid.checks", fmt.Sprint(*machines)); err != nil {
		t.Fatal(err)
	}
	defer flag.Set("rapid.checks", flag.Lookup("rapid.checks").DefValue)
	base := shortDir(t)
	t.Chdir(base)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := checkRunning(context.Background(), machine(t, realWorld(t, dir)), h); err != nil {
			t.Fatal(err)
		}
	})
}

// TestQEMUAcceptsEachPart has every part at least once, with its awkward text,
// in few starts; the generated machines may leave one out.
func TestQEMUAcceptsEachPart(t *testing.T) {
	const odd = `a,b=c "d" 'e' é日😀 {}[]:;%$\x`
	for _, kind := range []qemucmd.FirmwareKind{"bios", "uefi", "uefi-4m", "secure", "secure-4m"} {
		for _, json := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, JSON devices %v", kind, json), func(t *testing.T) {
				h := realHost(t)
				h.JSONDevice = json
				dir := shortDir(t) // the test's name is too long for the path of a socket
				t.Chdir(dir)
				file := realWorld(t, dir).file
				m := qemucmd.Machine{
					Name: odd, UUID: "7c7d0a55-4e1b-4e0f-8d5c-5d4c8b1c1f01",
					TranslationCache: 32,
					CPU:              qemucmd.CPU{Model: "host,-vmx", Maximum: 4},
					Memory:           qemucmd.Memory{Size: 100_000_000}, // no multiple of 1 MiB
					Firmware:         qemucmd.Firmware{Kind: kind},
					BootMenu:         true,
					KernelBoot:       &qemucmd.KernelBoot{Kernel: file("k"+odd, "kernel"), Initrd: file("i"+odd, ""), Args: "console=ttyS0 " + odd},
					RTC:              qemucmd.RTC{Base: "2026-11-21T10:11:12", Clock: "vm"},
					TPM:              &qemucmd.TPM{Socket: filepath.Join(dir, "tpm é=\""), StateDir: filepath.Join(dir, "tpm= 'state'")},
					Networks: []qemucmd.Network{
						{MAC: "02:00:00:00:00:01", User: &qemucmd.UserNetwork{Net: "10.1.0.0/16"}},
						{MAC: "02:00:00:00:00:02", User: &qemucmd.UserNetwork{}, Device: "e1000e"},
					},
					CDDrives:    []qemucmd.CDDrive{{Image: file("cd"+odd, ""), BootIndex: new(0)}, {}},
					Disks:       []qemucmd.Disk{{File: file("r"+odd, ""), Serial: `a,b=c "d" é`, BootIndex: new(1)}, {File: file("q"+odd, "qcow2"), Format: "qcow2"}},
					Seed:        &qemucmd.Seed{File: file("s"+odd, "")},
					AnswerCD:    &qemucmd.AnswerCD{File: file("w"+odd, "")},
					Outputs:     2,
					Serial:      &qemucmd.Socket{Path: filepath.Join(dir, "tty"+odd)},
					Monitor:     qemucmd.Socket{Path: filepath.Join(dir, "m"+odd)},
					ToolMonitor: &qemucmd.Socket{Path: filepath.Join(dir, "t"+odd)},
					GuestAgent:  &qemucmd.Socket{Path: filepath.Join(dir, "g"+odd)},
					VMOPAgent:   &qemucmd.Socket{Path: filepath.Join(dir, "v"+odd)},
					Display: &qemucmd.Display{SPICE: &qemucmd.SPICE{Socket: filepath.Join(dir, "spice"+odd), Ticketing: true, StreamingVideo: "all", USBRedirects: 14},
						VNC: &qemucmd.VNC{Socket: filepath.Join(dir, "vnc"+odd), Password: true}},
				}
				if kind != qemucmd.FirmwareBIOS {
					m.Firmware.VarsPath = filepath.Join(dir, "f"+odd)
				}
				if err := checkRunning(t.Context(), m, h); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(m.Display.SPICE.Socket); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// shortDir is t.TempDir with a short path.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "q")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestQEMUTakesTheLastAddress fills the bus as far as it goes.
func TestQEMUTakesTheLastAddress(t *testing.T) {
	for addresses, slots := range map[int]int{1: 14, 2: 12} {
		t.Run(fmt.Sprint("map ", addresses), func(t *testing.T) {
			dir := shortDir(t)
			t.Chdir(dir)
			file := realWorld(t, dir).file
			m := fullBus(addresses, slots)
			m.Monitor.Path = filepath.Join(dir, "monitor")
			m.TranslationCache = 32
			for i := range m.Disks {
				m.Disks[i].File = file(fmt.Sprint("disk", i), "")
			}
			m.Seed = &qemucmd.Seed{File: file("seed", "")}
			if err := checkRunning(t.Context(), m, realHost(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestQEMUHasTheCPULevels has QEMU refuse to start where a level has a feature that is
// none, or that its software emulation lacks, as it lacks AVX-512.
func TestQEMUHasTheCPULevels(t *testing.T) {
	for _, level := range []string{limits.CPULevel2, limits.CPULevel3} {
		m := small()
		m.TranslationCache = 32
		m.CPU.Model = level + ",enforce"
		m.Monitor.Path = filepath.Join(t.TempDir(), "monitor")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r, err := launch(ctx, m, realHost(t))
		if err == nil {
			err = r.stop()
		}
		if err != nil {
			t.Errorf("%s: %v", level, err)
		}
	}
}

// TestGuestAddresses pins what a guest sees, and what it saw in VM-Operator's
// machines: slots 1 to 7.
func TestGuestAddresses(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	m := small()
	m.Monitor.Path = filepath.Join(dir, "monitor")
	m.TranslationCache = 32
	file := realWorld(t, dir).file
	m.Networks = []qemucmd.Network{{MAC: qemucmd.StableMAC("x", 0), User: &qemucmd.UserNetwork{}}}
	m.Disks = []qemucmd.Disk{{File: file("disk", "")}}
	m.Seed = &qemucmd.Seed{File: file("seed", "")}
	m.PanicDevice = "pvpanic-pci"
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := launch(ctx, m, realHost(t))
	if err != nil {
		t.Fatal(err)
	}
	var buses []struct {
		Devices []struct {
			Slot, Function int
			ID             string `json:"qdev_id"`
		}
	}
	if err := errors.Join(r.ask(ctx, "query-pci", nil, &buses), r.stop()); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range buses[0].Devices {
		got[fmt.Sprintf("%02x.%d", d.Slot, d.Function)] = d.ID
	}
	want := map[string]string{
		"00.0": "", "01.0": "balloon0", "02.0": "virtio-serial0", "03.0": "usb", "04.0": "rng0", "05.0": "video0", "06.0": "sound0",
		"07.0": "net0", "10.0": "disk0", "1e.0": "seed", "1f.0": "", "1f.2": "", "1f.3": "", "1f.7": "panic0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestForwardsListenOnLocalhost: QEMU listens where it is told to, and only
// there.
func TestForwardsListenOnLocalhost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := t.TempDir()
	m := small()
	m.TranslationCache = 32
	m.Monitor.Path = filepath.Join(dir, "monitor")
	m.Networks = []qemucmd.Network{{MAC: qemucmd.StableMAC("x", 0), User: &qemucmd.UserNetwork{HostForwards: []qemucmd.HostForward{{HostPort: port, GuestPort: 22}}}}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := launch(ctx, m, realHost(t))
	if err != nil {
		t.Fatal(err)
	}
	var info string
	if err := r.ask(ctx, "human-monitor-command", map[string]string{"command-line": "info usernet"}, &info); err != nil {
		t.Error(err)
	}
	if want := fmt.Sprintf("127.0.0.1 %d", port); !strings.Contains(strings.Join(strings.Fields(info), " "), want) {
		t.Errorf("no %q in %s", want, info)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// TestGuestBootsFromEachKindOfAddress lets the firmware boot from disks: alone
// in a slot that announces more functions, and in a further function. The boot
// index, and neither the order nor the address, decides which.
func TestGuestBootsFromEachKindOfAddress(t *testing.T) {
	for _, disk := range []int{0, 3, 14, 29} {
		t.Run(fmt.Sprint("disk ", disk), func(t *testing.T) {
			dir := shortDir(t)
			m := small()
			m.TranslationCache = 32
			m.Monitor.Path = filepath.Join(dir, "monitor")
			m.Serial = &qemucmd.Socket{Path: filepath.Join(dir, "serial")}
			for i := range max(disk+1, 2) {
				p := filepath.Join(dir, fmt.Sprint("disk", i))
				if err := os.WriteFile(p, bootSector(byte('A'+i)), 0o600); err != nil {
					t.Fatal(err)
				}
				m.Disks = append(m.Disks, qemucmd.Disk{File: p, BootIndex: new(100 - i)})
			}
			m.Disks[disk].BootIndex = new(0)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r, err := launch(ctx, m, realHost(t))
			if err != nil {
				t.Fatal(err)
			}
			serial, err := net.Dial("unix", m.Serial.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer serial.Close()
			deadline, _ := ctx.Deadline()
			got := make([]byte, 1)
			_, contErr := r.Execute(ctx, "cont", nil)
			if err := errors.Join(contErr, serial.SetDeadline(deadline)); err != nil {
				t.Error(err)
			}
			if _, err := serial.Read(got); err != nil {
				t.Error(err)
			} else if got[0] != byte('A'+disk) {
				t.Errorf("booted from disk %d", int(got[0])-'A')
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// bootSector returns a disk whose program writes one character to the serial
// port, and stops.
func bootSector(c byte) []byte {
	disk := make([]byte, 1<<20)
	copy(disk, []byte{
		0xba, 0xf8, 0x03, // mov dx, 0x3f8
		0xb0, c, // mov al, c
		0xee,       // out dx, al
		0xf4,       // hlt
		0xeb, 0xfd, // jmp back to hlt
	})
	copy(disk[510:], []byte{0x55, 0xaa})
	return disk
}
