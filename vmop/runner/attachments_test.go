package runner

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// exportEnv makes the test binary an exporter of the options that the variable's file
// holds, so that a test can kill it.
const exportEnv = "VMOP_TEST_EXPORT"

// exportProcess is what an exporter in a process of its own needs.
type exportProcess struct {
	QEMU, Path, Runtime, Certificate, Key, Client, Listen string
	Size                                                  int64
}

func runAsExporter(path string) int {
	data, err := os.ReadFile(path)
	var p exportProcess
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	var own tunnel.Identity
	if err == nil {
		own, err = tunnel.LoadIdentity(p.Certificate, p.Key)
	}
	var l net.Listener
	if err == nil {
		l, err = net.Listen("tcp", p.Listen)
	}
	if err == nil {
		ctx, end := context.WithCancel(context.Background())
		OnStopSignals(end)
		err = Export(ctx, l, ExportOptions{
			QEMU: p.QEMU, Path: p.Path, Size: p.Size, Runtime: p.Runtime, Own: own, Client: p.Client,
			Linger: time.Minute, Reporter: &LogReporter{Out: os.Stdout},
		})
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		return ExitStart
	}
	return ExitOK
}

// bench is a machine, and an exporter beside it.
type exportBench struct {
	t           testing.TB
	p           exportProcess
	fingerprint string
	dir         string
}

func newExportBench(t testing.TB) *exportBench {
	t.Helper()
	dir, err := os.MkdirTemp("", "vmop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &exportBench{t: t, dir: dir}
	cert, key := b.certificate()
	// Until the exporter listens there, nobody else takes the port: what other tests have is
	// at 127.0.0.1.
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	b.p = exportProcess{
		QEMU: testHost(t).QEMU, Path: filepath.Join(dir, "claim", "disk.img"), Runtime: filepath.Join(dir, "run"),
		Certificate: cert, Key: key, Listen: l.Addr().String(), Size: 8 << 20,
	}
	for _, d := range []string{filepath.Dir(b.p.Path), b.p.Runtime} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

// certificate is of the form that the operator makes.
func (b *exportBench) certificate() (cert, key string) {
	b.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(7), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		b.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		b.t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if b.fingerprint, err = tunnel.Fingerprint(public); err != nil {
		b.t.Fatal(err)
	}
	cert, key = filepath.Join(b.dir, "tls.crt"), filepath.Join(b.dir, "tls.key")
	for path, data := range map[string][]byte{cert: public, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	return cert, key
}

// exporter starts one in a process of its own.
func (b *exportBench) exporter() *exec.Cmd {
	b.t.Helper()
	data, err := json.Marshal(b.p)
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.dir, "export.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.t.Fatal(err)
	}
	cmd := testbin.Self(context.Background(), b.t, exportEnv+"="+path)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, mostly
		_ = cmd.Wait()
	})
	return cmd
}

// attachment waits until the machine has it in a phase.
func (r *running) attachment(t *testing.T, uid string, phase live.Phase) State {
	t.Helper()
	return r.until(t, "the attachment is "+string(phase), func(s State) bool {
		return slices.ContainsFunc(s.Attachments, func(a live.Attachment) bool { return a.UID == uid && a.Phase == phase })
	})
}

// A disk that another process exports comes while the guest runs and is written and read;
// when the exporter is killed, the guest waits and goes on with the next one; it goes
// again, what was written is there, and another run of the machine reads it.
func TestAttachedDisk(t *testing.T) {
	t.Parallel()
	b := newExportBench(t)
	dirs := testDirs(t)
	c := testConfig(t)
	r := start(t, c, dirs, func(o *Options) { o.holds = int(patience.Seconds()) })
	con := r.console(t)
	give := func(a runnerconfig.Attachment) {
		t.Helper()
		r.log.forget()
		next := c
		next.Runner.VM.Attachments = []runnerconfig.Attachment{a}
		if err := r.Reconfigure(next); err != nil {
			t.Fatal(err)
		}
	}
	a := runnerconfig.Attachment{UID: "0b9f-1", Name: "data"}
	give(a)
	s := r.attachment(t, a.UID, live.AttachmentPending)
	if len(s.AttachmentKey) != 64 {
		t.Fatalf("the key %q", s.AttachmentKey)
	}
	b.p.Client = s.AttachmentKey
	first := b.exporter()
	b.listens()
	a.Address, a.Fingerprint = b.p.Listen, b.fingerprint
	give(a)
	r.attachment(t, a.UID, live.AttachmentAttached)
	if _, err := con.Expect(withPatience(t), "vmop-guest: disk vda"); err != nil {
		t.Fatal(err)
	}
	if out := command(t, con, "disks"); !strings.Contains(out, "data") {
		t.Errorf("the guest has the disks %s", out)
	}
	command(t, con, "write vda 4096 first words")

	// It stays over a reset of the guest.
	r.log.forget()
	if err := con.Send("reboot"); err != nil {
		t.Fatal(err)
	}
	if err := con.WaitReady(withPatience(t)); err != nil {
		t.Fatal(err)
	}
	if out := command(t, con, "read vda 4096 11"); !strings.Contains(out, "first words") {
		t.Errorf("after a reset it reads %s", out)
	}

	// The guest writes while nobody is there, and does not notice.
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	written := make(chan error, 1)
	go func() {
		_, err := con.Command(withPatience(t), "write vda 8192 second words")
		written <- err
	}()
	second := b.exporter()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if out := command(t, con, "read vda 8192 12"); !strings.Contains(out, "second words") {
		t.Errorf("it reads %s", out)
	}

	a.Detach = true
	give(a)
	r.attachment(t, a.UID, live.AttachmentDetached)
	if out := command(t, con, "disks"); strings.Contains(out, "vda") {
		t.Errorf("the guest still has the disks %s", out)
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the exporter ended with %v", err)
	}
	data, err := os.ReadFile(b.p.Path)
	if err != nil || len(data) != int(b.p.Size) || !bytes.HasPrefix(data[4096:], []byte("first words")) || !bytes.HasPrefix(data[8192:], []byte("second words")) {
		t.Errorf("the image has %d bytes, %v", len(data), err)
	}
	r.Stop()
	if o, err := r.wait(t); err != nil || !o.Orderly {
		t.Errorf("%+v, %v", o, err)
	}
	nothingLeft(t, dirs)
}

// functionOf is the PCI address at which a guest has the disk of an attachment: the bus is
// that of its root port.
func functionOf(t *testing.T, r *running, uid string) string {
	t.Helper()
	type device struct {
		Bus    int    `json:"bus"`
		Slot   int    `json:"slot"`
		QDevID string `json:"qdev_id"`
		Bridge *struct {
			Devices []json.RawMessage `json:"devices"`
		} `json:"pci_bridge"`
	}
	var buses []struct {
		Devices []json.RawMessage `json:"devices"`
	}
	c, err := qmp.Dial(withPatience(t), r.State().Socket(qemucmd.SocketToolMonitor), qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.Execute(withPatience(t), "query-pci", nil)
	if err == nil {
		err = json.Unmarshal(raw, &buses)
	}
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	var look func(all []json.RawMessage)
	look = func(all []json.RawMessage) {
		for _, one := range all {
			var d device
			if err := json.Unmarshal(one, &d); err != nil {
				t.Fatal(err)
			}
			if d.QDevID == qemucmd.AttachedID(uid) {
				found = fmt.Sprintf("%02x:%02x", d.Bus, d.Slot)
			}
			if d.Bridge != nil {
				look(d.Bridge.Devices)
			}
		}
	}
	for _, b := range buses {
		look(b.Devices)
	}
	return found
}

// A disk that was exported to a machine is the same for its guest when the machine's next
// run has it itself: it is there when the guest boots, at the same address and with the
// same serial number, and has what was written. While QEMU has it, nobody exports it; when
// the guest has released it, somebody else can.
func TestDirectlyAttachedDisk(t *testing.T) {
	t.Parallel()
	b := newExportBench(t)
	dirs := testDirs(t)
	c := testConfig(t)
	give := func(r *running, a ...runnerconfig.Attachment) {
		t.Helper()
		r.log.forget()
		next := c
		next.Runner.VM.Attachments = a
		if err := r.Reconfigure(next); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, c, dirs)
	con := r.console(t)
	a := runnerconfig.Attachment{UID: "0b9f-1", Name: "data", Place: 2}
	give(r, a)
	b.p.Client = r.attachment(t, a.UID, live.AttachmentPending).AttachmentKey
	exporter := b.exporter()
	b.listens()
	exported := a
	exported.Address, exported.Fingerprint = b.p.Listen, b.fingerprint
	give(r, exported)
	s := r.attachment(t, a.UID, live.AttachmentAttached)
	if s.Attachments[0].Place != 2 {
		t.Errorf("it is at place %d", s.Attachments[0].Place)
	}
	if _, err := con.Expect(withPatience(t), "vmop-guest: disk vda"); err != nil {
		t.Fatal(err)
	}
	before, at := command(t, con, "disks"), functionOf(t, r, a.UID)
	command(t, con, "write vda 4096 first words")
	r.Stop()
	if o, err := r.wait(t); err != nil || !o.Orderly {
		t.Fatalf("%+v, %v", o, err)
	}
	b.ends(t, exporter)

	direct := a
	direct.Path, direct.GrowTo = b.p.Path, 12<<20
	c.Runner.VM.Attachments = []runnerconfig.Attachment{direct}
	r = start(t, c, dirs)
	con = r.console(t)
	r.attachment(t, a.UID, live.AttachmentAttached)
	before = strings.Replace(before, "8388608 bytes", "12582912 bytes", 1) // it has grown
	if out := command(t, con, "disks"); out != before || !strings.Contains(out, "serial data") {
		t.Errorf("the guest has the disks %s, and had %s", out, before)
	}
	if got := functionOf(t, r, a.UID); got != at || at == "" {
		t.Errorf("the disk is at %q, and was at %q", got, at)
	}
	if out := command(t, con, "read vda 4096 11"); !strings.Contains(out, "first words") {
		t.Errorf("it reads %s", out)
	}
	command(t, con, "write vda 8192 second words")
	refused := b.exporter()
	if err := refused.Wait(); err == nil {
		t.Error("it is exported, too")
	}

	direct.Detach = true
	give(r, direct)
	r.attachment(t, a.UID, live.AttachmentDetached)
	if out := command(t, con, "disks"); strings.Contains(out, "vda") {
		t.Errorf("the guest still has the disks %s", out)
	}
	exporter = b.exporter()
	b.listens()
	b.ends(t, exporter)

	// It comes back to the same guest.
	direct.Detach = false
	give(r, direct)
	r.attachment(t, a.UID, live.AttachmentAttached)
	if _, err := con.Expect(withPatience(t), "vmop-guest: disk vda"); err != nil {
		t.Fatal(err)
	}
	if out := command(t, con, "read vda 8192 12"); !strings.Contains(out, "second words") {
		t.Errorf("it reads %s", out)
	}
	r.Stop()
	if o, err := r.wait(t); err != nil || !o.Orderly {
		t.Errorf("%+v, %v", o, err)
	}
	nothingLeft(t, dirs)
}

// client is a socket by which tools of QEMU reach an export, as QEMU itself does.
func (b *exportBench) client(t testing.TB, own tunnel.Identity) string {
	t.Helper()
	path := filepath.Join(b.dir, "client.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tunnel.Forward(ctx, l, own, func() tunnel.Target {
			return tunnel.Target{Address: b.p.Listen, Fingerprint: b.fingerprint}
		}, func(err error) { t.Log(err) })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return "nbd+unix:///" + exportName + "?socket=" + path
}

// serves waits until an exporter serves this client.
func (b *exportBench) serves(t testing.TB, own tunnel.Identity) {
	t.Helper()
	for ctx := withPatience(t); ; time.Sleep(20 * time.Millisecond) {
		err := tunnel.Probe(ctx, tunnel.Target{Address: b.p.Listen, Fingerprint: b.fingerprint}, own, greetNBD)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// ends ends an exporter, which has to do so in order.
func (b *exportBench) ends(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the exporter ended with %v", err)
	}
}

func tool(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(withPatience(t), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// BenchmarkExport holds an exported disk against the same image without a way between, as
// a machine has it whose pod has the volume itself: 64 KiB in a row, sixteen at a time; and
// 4 KiB in no order, sixteen reads at a time, and writes each of which is flushed to the
// storage before the next one, as a database does it.
func BenchmarkExport(b *testing.B) {
	x := newExportBench(b)
	own, err := tunnel.NewIdentity()
	if err != nil {
		b.Fatal(err)
	}
	x.p.Client, x.p.Size = own.Fingerprint(), 256<<20
	url := x.client(b, own)
	cmd := x.exporter()
	x.serves(b, own)
	// A step that is odd in blocks, and far longer than what is read ahead, leads to each
	// block of the disk before it leads to one again.
	const block, step = 4 << 10, 7919 * 4 << 10
	for _, c := range []struct {
		name           string
		requests, size int
		args           []string
	}{
		{"write-64k", 4096, 64 << 10, []string{"-w", "-d", "16"}},
		{"read-64k", 4096, 64 << 10, []string{"-d", "16"}},
		{"scattered-read-4k", 8192, block, []string{"-d", "16", "-S", strconv.Itoa(step)}},
		{"scattered-synced-write-4k", 1024, block, []string{"-w", "-d", "1", "--flush-interval=1", "-S", strconv.Itoa(step)}},
	} {
		for _, way := range []struct{ name, where string }{{"direct", x.p.Path}, {"exported", url}} {
			b.Run(c.name+"/"+way.name, func(b *testing.B) {
				b.SetBytes(int64(c.requests * c.size))
				args := append([]string{"bench", "-f", "raw", "-c", strconv.Itoa(c.requests), "-s", strconv.Itoa(c.size)}, c.args...)
				for b.Loop() {
					tool(b, "qemu-img", append(args, way.where)...)
				}
				b.ReportMetric(float64(b.N*c.requests)/b.Elapsed().Seconds(), "requests/s")
			})
		}
	}
	x.ends(b, cmd)
}

// What is in an image of qcow2 is exported, and not the image; and a raw image stays one,
// whatever its guest has written into it.
func TestExportedFormats(t *testing.T) {
	b := newExportBench(t)
	own, err := tunnel.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	b.p.Client = own.Fingerprint()
	url := b.client(t, own)
	raw := b.p.Path
	b.p.Path, b.p.Size = raw+".qcow2", 0
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", b.p.Path, "3M")
	cmd := b.exporter()
	b.serves(t, own)
	tool(t, "qemu-io", "-f", "raw", "-c", "write -P 7 1M 64k", "-c", "flush", url)
	if out := tool(t, "qemu-img", "info", url); !strings.Contains(out, "3 MiB") {
		t.Errorf("its size: %s", out)
	}
	b.ends(t, cmd)
	if out := tool(t, "qemu-io", "-r", "-f", "qcow2", "-c", "read -P 7 1M 64k", b.p.Path); strings.Contains(out, "verification failed") {
		t.Error(out)
	}
	if err := os.Remove(b.p.Path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(raw), attachedRecord)); err != nil {
		t.Fatal(err)
	}

	b.p.Path, b.p.Size = raw, 1<<20
	cmd = b.exporter()
	b.serves(t, own)
	header := filepath.Join(b.dir, "header")
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", header, "1M")
	tool(t, "qemu-io", "-f", "raw", "-c", "write -s "+header+" 0 192k", "-c", "flush", url)
	b.ends(t, cmd)
	cmd = b.exporter()
	b.serves(t, own)
	if out := tool(t, "qemu-io", "-r", "-f", "raw", "-c", "read -v 0 4", url); !strings.Contains(out, "51 46 49 fb") {
		t.Errorf("it is no raw disk any more: %s", out)
	}
	b.ends(t, cmd)
}

// An exporter that is started while the disk is another process', such as the QEMU of the
// one before, waits for it, and is ended while it waits.
func TestExporterWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	b := newExportBench(t)
	own, err := tunnel.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	b.p.Client = own.Fingerprint()
	f, err := os.Create(b.p.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(f.Truncate(1<<20), unix.Flock(int(f.Fd()), unix.LOCK_EX)); err != nil {
		t.Fatal(err)
	}
	b.p.Size = 0
	// It listens before it looks at the disk.
	waits := func() *exec.Cmd {
		cmd := b.exporter()
		b.listens()
		time.Sleep(500 * time.Millisecond)
		return cmd
	}
	b.ends(t, waits())

	last := waits()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	b.serves(t, own)
	b.ends(t, last)
}

// listens waits until an exporter is there.
func (b *exportBench) listens() {
	b.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx := withPatience(b.t); ; {
		conn, err := net.Dial("tcp", b.p.Listen)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.t.Fatal(err)
		}
	}
}

// What is no exporter is not taken for one.
func TestGreetNBD(t *testing.T) {
	for said, want := range map[string]string{
		"":                             "EOF",
		"HTTP/1.1 400 Bad Request\r\n": "does not speak NBD",
		"NBDMAGICIHAVEOPT\x00\x03":     "",
	} {
		var out bytes.Buffer
		err := greetNBD(struct {
			io.Reader
			io.Writer
		}{strings.NewReader(said), &out})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || (err == nil) != (out.Len() == 20) {
			t.Errorf("%q: %v, %q", said, err, &out)
		}
	}
}

// What must not be exported is not, and a disk is exported by one process only.
func TestExportRefuses(t *testing.T) {
	b := newExportBench(t)
	own, err := tunnel.LoadIdentity(b.p.Certificate, b.p.Key)
	if err != nil {
		t.Fatal(err)
	}
	export := func(ctx context.Context, path string, size int64) error {
		t.Helper()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		runtime := t.TempDir()
		ctx, end := context.WithTimeout(ctx, patience)
		defer end()
		return Export(ctx, l, ExportOptions{
			QEMU: b.p.QEMU, Path: path, Size: size, Runtime: runtime, Own: own, Client: own.Fingerprint(),
			Volumes: []string{b.dir},
		})
	}
	dir := filepath.Dir(b.p.Path)
	backed := filepath.Join(dir, "backed.qcow2")
	for _, args := range [][]string{
		{"create", "-q", "-f", "raw", filepath.Join(dir, "base.img"), "1M"},
		{"create", "-q", "-f", "qcow2", "-b", filepath.Join(dir, "base.img"), "-F", "raw", backed},
	} {
		if out, err := exec.CommandContext(t.Context(), "qemu-img", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	link := filepath.Join(dir, "link.img")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want string
	}{
		{backed, "backing"}, {link, "symbolic link"}, {filepath.Join(dir, "none.img"), "no such file"}, {dir, "neither a file nor"},
	} {
		if err := export(t.Context(), c.path, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.path, err)
		}
	}

	b.p.Client = own.Fingerprint()
	first := b.exporter()
	b.listens()
	b.serves(t, own)
	if err := export(t.Context(), b.p.Path, 0); err == nil || !strings.Contains(err.Error(), "lock") {
		t.Errorf("a second exporter: %v", err)
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
	// What was there and is missing is not made anew.
	if err := os.Rename(b.p.Path, b.p.Path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := export(t.Context(), b.p.Path, 1<<20); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("a lost image: %v", err)
	}
}
