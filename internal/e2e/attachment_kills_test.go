//go:build e2e

package e2e

import (
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
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
)

// written are texts that a guest has been told are written, one for each sector.
type written struct{ n int }

// more has the guest write some, and returns when it says that they are written.
func (w *written) more(t *testing.T, c *tinyguest.Console) {
	t.Helper()
	for range 8 {
		say(t, c, fmt.Sprintf("write vdb %d text %04d", dataOffset+512*w.n, w.n))
		w.n++
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

// killExporter kills the exporter of an attachment.
func killExporter(t *testing.T, name string) {
	t.Helper()
	key := kubectl(t, "get", "vmbda", "-n", namespace, name, "-o", "jsonpath={.status.connection.key}")
	if len(key) != 64 {
		t.Fatalf("key %q", key)
	}
	// The pattern is not in the command line of who looks for it.
	onNode(t, "kill", "-KILL", process(t, "^[^ ]*vmop-runner export .*client="+key[:1]+"["+key[1:2]+"]"+key[2:]))
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

// Whoever is killed while a machine has an attached disk, the operator, the exporter, both,
// or the runner with its guest: nothing is lost that the guest was told is written, the
// disk comes back, and it can be detached. Who has not the machine's key gets nothing.
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

	// The operator, when it has just been asked.
	attachment(t, "first", "tiny")
	killOperator(t)
	awaitAttachment(t, "first", "Attached")
	awaitDisks(t, tiny, "vdb 33554432 bytes", true)
	texts.more(t, tiny)

	address := kubectl(t, "get", "vmbda", "-n", namespace, "first", "-o", "jsonpath={.status.connection.address}")
	refused(t, address)
	texts.verify(t, tiny, "after strangers have tried")

	// The exporter, alone and with the operator: the guest waits.
	killExporter(t, "first")
	texts.more(t, tiny)
	texts.verify(t, tiny, "after the exporter was killed")
	killOperator(t)
	killExporter(t, "first")
	texts.more(t, tiny)
	texts.verify(t, tiny, "after exporter and operator were killed")

	// The runner, and with it the guest: the next one has the disk.
	before := kubectl(t, "get", "vmbda", "-n", namespace, "first", "-o", "jsonpath={.status.connection.podUID}")
	qemu := process(t, "qemu-system.* guest=tin[y],")
	onNode(t, "kill", "-KILL", strings.TrimSpace(onNode(t, "ps", "-o", "ppid=", "-p", qemu)))
	eventually(t, "another pod has the disk", func() error {
		got := kubectl(t, "get", "vmbda", "-n", namespace, "first", "-o", "jsonpath={.status.phase} {.status.connection.podUID}")
		if pod, is := strings.CutPrefix(got, "Attached "); !is || pod == before || pod == "" {
			return errors.New(got)
		}
		return nil
	})
	runs(t, "tiny")
	tiny = console(t, "tiny")
	awaitDisks(t, tiny, "vdb 33554432 bytes", true)
	texts.verify(t, tiny, "after the runner was killed")
	texts.more(t, tiny)

	// The operator, when it has just been asked to detach, and to attach again.
	kubectl(t, "delete", "vmbda", "-n", namespace, "first", "--wait=false")
	killOperator(t)
	gone(t, "vmbda/first")
	awaitDisks(t, tiny, "vdb", false)
	attachment(t, "again", "tiny")
	awaitAttachment(t, "again", "Attached")
	awaitDisks(t, tiny, "vdb 33554432 bytes", true)
	texts.verify(t, tiny, "after it was detached and attached")
	t.Logf("%d texts; $ kubectl get vmbda\n%s", texts.n, kubectl(t, "get", "vmbda", "-n", namespace))

	kubectl(t, "delete", "vm", "-n", namespace, "tiny", "--wait=true")
	kubectl(t, "delete", "vmbda", "-n", namespace, "again", "--wait=true", "--timeout="+patience.String())
	kubectl(t, "delete", "vd", "-n", namespace, "files", "--wait=true", "--timeout="+patience.String())
}
