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
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/live"
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
	t           *testing.T
	p           exportProcess
	fingerprint string
	dir         string
}

func newExportBench(t *testing.T) *exportBench {
	t.Helper()
	dir, err := os.MkdirTemp("", "vmop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &exportBench{t: t, dir: dir}
	cert, key := b.certificate()
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
	exe, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), exportEnv+"="+path)
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
	b := newExportBench(t)
	dirs := testDirs(t)
	c := testConfig(t)
	r := start(t, c, dirs)
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
	for ctx := withPatience(t); ; time.Sleep(20 * time.Millisecond) {
		if err := tunnel.Probe(ctx, tunnel.Target{Address: b.p.Listen, Fingerprint: b.fingerprint}, own); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
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
