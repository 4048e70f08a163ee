//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
)

// written are texts that a guest has been told are written, one for each sector.
type written struct{ n int }

// next has the guest write one more, which counts when the guest says that it is written.
func (w *written) next(ctx context.Context, c *tinyguest.Console) error {
	_, err := c.Command(ctx, fmt.Sprintf("write vdb %d text %04d", dataOffset+512*w.n, w.n))
	if err == nil {
		w.n++
	}
	return err
}

// more has the guest write some.
func (w *written) more(t *testing.T, c *tinyguest.Console) {
	t.Helper()
	for range 8 {
		if err := w.next(withPatience(t), c); err != nil {
			t.Fatal(err)
		}
	}
}

// during has the guest write while somebody is killed, and for a second afterwards. A guest
// that does not outlive that is told apart from one that waits for its disk.
func (w *written) during(t *testing.T, c *tinyguest.Console, outlives bool, kill func()) {
	t.Helper()
	ctx, stop := withPatience(t), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			case <-time.After(20 * time.Millisecond):
				if err := w.next(ctx, c); err != nil {
					ended <- err
					return
				}
			}
		}
	}()
	var once sync.Once
	end := func() { once.Do(func() { close(stop) }) }
	defer end() // should kill end the test
	time.Sleep(200 * time.Millisecond)
	kill()
	if outlives {
		time.Sleep(time.Second)
		end()
	}
	if err := <-ended; outlives != (err == nil) {
		t.Fatalf("the guest outlives it: %v, want %v: %v", err == nil, outlives, err)
	}
}

// verify has the guest read all of them.
func (w *written) verify(t *testing.T, c *tinyguest.Console, when string) {
	t.Helper()
	for i := range w.n {
		if got, want := say(t, c, fmt.Sprintf("read vdb %d 9", dataOffset+512*i)), fmt.Sprintf("text %04d", i); !strings.Contains(got, want) {
			t.Errorf("%s: text %d is %q, want %q", when, i, got, want)
		}
	}
}

// process is the one process of the node whose command line matches.
func process(t *testing.T, pattern string) string {
	t.Helper()
	pids := strings.Fields(onNode(t, "pgrep", "-f", pattern))
	if len(pids) != 1 {
		t.Fatalf("%s: processes %v, want one", pattern, pids)
	}
	return pids[0]
}

// killOperator kills the operator, which the kubelet starts again.
func killOperator(t *testing.T) {
	t.Helper()
	onNode(t, "kill", "-KILL", process(t, "^[^ ]*vm-operato[r]( |$)"))
}

// renewOperator replaces the operator's pod: the kubelet starts a container at once that
// was killed for the first time, and later after pauses that grow.
func renewOperator(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "pod", "-n", "vmop-system", "-l", "app.kubernetes.io/name=vmop-operator", "--wait=true", "--timeout="+patience.String())
	kubectl(t, "rollout", "status", "-n", "vmop-system", "deployment/vmop-operator", "--timeout="+patience.String())
}

// keyOf waits for the key of an attachment's exporter, which is known before there is an
// exporter. It is empty if the attachment is gone.
func keyOf(t *testing.T, name string) (key string) {
	t.Helper()
	eventually(t, "there is a connection", func() error {
		key = kubectl(t, "get", "vmbda", "-n", namespace, name, "--ignore-not-found", "-o", "jsonpath={.status.connection.key}")
		if len(key) != 64 && exists(t, "vmbda/"+name) {
			return fmt.Errorf("key %q", key)
		}
		return nil
	})
	return key
}

// exists reports whether there is an object.
func exists(t *testing.T, object string) bool {
	t.Helper()
	return kubectl(t, "get", "-n", namespace, object, "--ignore-not-found", "-o", "name") != ""
}

// killExporter kills the exporter of an attachment, once it is there. One that has ended,
// because its disk is detached, is not waited for.
func killExporter(t *testing.T, name string) {
	t.Helper()
	key := keyOf(t, name)
	if key == "" {
		return
	}
	// The pattern is not in the command line of who looks for it.
	pattern := "^[^ ]*vmop-runner export .*client=" + key[:1] + "[" + key[1:2] + "]" + key[2:]
	eventually(t, "the exporter is killed", func() error {
		_, err := theNode.Run(withPatience(t), "pkill", "-KILL", "-f", pattern)
		if err != nil && !exists(t, "vmbda/"+name) {
			return nil
		}
		return err
	})
}

// stranger makes a key that nobody knows, and returns the file with it and its certificate.
func stranger(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	file := filepath.Join(t.TempDir(), "stranger.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// refused tries to reach an exporter from another pod's network, without a key and with
// one that is not the machine's.
func refused(t *testing.T, address string) {
	t.Helper()
	pod := process(t, "^[^ ]*vm-operato[r]( |$)")
	for _, c := range []struct {
		what  string
		curl  []string
		alert bool
	}{
		{"without a key", []string{"https://" + address + "/"}, true},
		{"with a stranger's", []string{"--cert", stranger(t), "https://" + address + "/"}, true},
		{"without TLS", []string{"--http0.9", "http://" + address + "/"}, false},
	} {
		out, err := theNode.Run(withPatience(t), append([]string{"nsenter", "-t", pod, "-n", "curl", "--insecure", "--silent", "--show-error", "--max-time", "20"}, c.curl...)...)
		t.Logf("%s: %v %s", c.what, err, out)
		switch {
		case err == nil:
			t.Errorf("%s somebody is served: %q", c.what, out)
		case strings.Contains(err.Error()+out, "NBDMAGIC"):
			t.Errorf("%s somebody is greeted: %v %q", c.what, err, out)
		case c.alert && !strings.Contains(err.Error()+out, "alert"):
			t.Errorf("%s: %v %s, want an alert of TLS", c.what, err, out)
		}
	}
}

// killRunner kills the runner of the machine tiny, with which its guest ends.
func killRunner(t *testing.T) {
	t.Helper()
	qemu := process(t, "qemu-system.* guest=tin[y],")
	onNode(t, "kill", "-KILL", strings.TrimSpace(onNode(t, "ps", "-o", "ppid=", "-p", qemu)))
}

// Whoever is killed, the operator, the exporter of a disk, both, or the runner with its
// guest, and whenever: while the disk is attached, while the guest writes to it, and while
// it is detached. Nothing is lost that the guest was told is written, each attachment comes
// to its end, and the machine gets the disk again. Who has not its key gets nothing.
func TestAttachmentsOutliveKills(t *testing.T) {
	explainOnFailure(t)
	install(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(kubectl(t, "get", "vmbda", "-n", namespace, "-o", "yaml"))
			t.Log(kubectl(t, "get", "pods", "-n", namespace, "-o", "wide"))
		}
	})
	manifest, err := os.ReadFile("machine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, fmt.Sprintf(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualDisk
metadata: {name: files, namespace: %s}
spec:
  persistentVolumeClaim: {size: 32Mi, storageClassName: local, volumeMode: Filesystem}
`, namespace))
	apply(t, string(manifest))
	runs(t, "tiny")
	tiny := console(t, "tiny")
	var texts written

	podUID := func() string {
		return kubectl(t, "get", "pod", "-n", namespace, "tiny", "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
	}
	// next waits for the machine's next pod, and speaks with its guest. A machine that ended
	// more than once is started after pauses that grow, or when its specification has changed.
	ends := 0
	next := func(before string) {
		t.Helper()
		eventually(t, "the end is noticed", func() error {
			if pod := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "jsonpath={.status.lastEnd.podUID}"); pod != before {
				return fmt.Errorf("the last end is that of pod %q, not %s", pod, before)
			}
			return nil
		})
		ends++
		kubectl(t, "patch", "vm", "-n", namespace, "tiny", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"vm":{"powerdownTimeout":%d}}}`, 60+ends))
		eventually(t, "another pod runs", func() error {
			got := kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "jsonpath={.status.phase} {.status.virtualMachinePods[?(@.active==true)].uid}")
			if pod, is := strings.CutPrefix(got, "Running "); !is || pod == before || pod != podUID() {
				return errors.New(got)
			}
			return nil
		})
		tiny = console(t, "tiny")
	}
	attached := func(name, when string) {
		t.Helper()
		awaitAttachment(t, name, "Attached")
		awaitDisks(t, tiny, "vdb 33554432 bytes", true)
		texts.verify(t, tiny, when)
		texts.more(t, tiny)
	}

	for _, killed := range []struct {
		name     string
		outlives bool // the guest
		kill     func(attachment string)
		renew    func() // for the next one
	}{
		{"operator", true, func(string) { killOperator(t) }, func() { renewOperator(t) }},
		{"exporter", true, func(name string) { killExporter(t, name) }, func() {}},
		{"both", true, func(name string) { killOperator(t); killExporter(t, name) }, func() { renewOperator(t) }},
		{"runner", false, func(string) { killRunner(t) }, func() {}},
	} {
		// While it is attached.
		name := killed.name
		before := podUID()
		attachment(t, name, "tiny")
		keyOf(t, name)
		t.Logf("%s is killed: %s", name, kubectl(t, "get", "vmbda", "-n", namespace, name, "--no-headers"))
		killed.kill(name)
		if !killed.outlives {
			next(before)
		}
		attached(name, name+" was killed while the disk was attached")
		if name == "operator" {
			refused(t, kubectl(t, "get", "vmbda", "-n", namespace, name, "-o", "jsonpath={.status.connection.address}"))
			texts.verify(t, tiny, "after strangers have tried")
		}
		killed.renew()

		// While the guest writes.
		before = podUID()
		texts.during(t, tiny, killed.outlives, func() { killed.kill(name) })
		if !killed.outlives {
			next(before)
		}
		attached(name, name+" was killed while the guest wrote")
		killed.renew()

		// While it is detached.
		before = podUID()
		kubectl(t, "delete", "vmbda", "-n", namespace, name, "--wait=false")
		t.Logf("%s is killed: %s", name, kubectl(t, "get", "vmbda", "-n", namespace, name, "--no-headers", "--ignore-not-found"))
		killed.kill(name)
		if !killed.outlives {
			next(before)
		}
		gone(t, "vmbda/"+name)
		awaitDisks(t, tiny, "vdb", false)
		killed.renew()
	}
	attachment(t, "again", "tiny")
	attached("again", "after all that")
	t.Logf("%d texts; $ kubectl get vmbda\n%s", texts.n, kubectl(t, "get", "vmbda", "-n", namespace))

	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	kubectl(t, "delete", "vmbda", "-n", namespace, "again", "--wait=true", "--timeout="+patience.String())
	kubectl(t, "delete", "vd", "-n", namespace, "files", "--wait=true", "--timeout="+patience.String())
}
