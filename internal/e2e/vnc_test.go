//go:build e2e

package e2e

import (
	"bufio"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/rfb"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

// vncPort is the port of VNC in a machine whose manifest names none.
const vncPort = "5901"

// checkVNC opens the display of the machine as its user does: with a port of the
// user's host that vmop-cli leads to the pod, and with the password that the user
// asks for.
func checkVNC(t *testing.T) {
	t.Helper()
	forward, end := proxied(t, "vnc", "tiny")
	defer end()
	wrong, password := passwords(t)
	for what, p := range wrong {
		conn, _, err := rfb.Open(withPatience(t), "tcp", forward, p)
		if err == nil {
			_ = conn.Close()
		}
		if !errors.Is(err, rfb.ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	conn, screen := knocking(t, func() (io.ReadWriteCloser, error) { return net.Dial("tcp", forward) }, password)
	checkPicture(t, conn, screen)
	// The port is forwarded from inside of the pod.
	checkConsole(t, conn, "127.0.0.1")

	// The pod itself answers too, to whoever has the password.
	address := net.JoinHostPort(kubectl(t, "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.status.podIP}"), vncPort)
	direct, _, err := rfb.Open(withPatience(t), "tcp", address, password)
	if err != nil {
		t.Fatal(err)
	}
	checkConsole(t, direct, direct.LocalAddr().(*net.TCPAddr).IP.String())
}

// checkVNCSocket does the same for a machine whose server has no port.
func checkVNCSocket(t *testing.T) {
	t.Helper()
	out := kubectl(t, "get", "pod", "-n", namespace, "tiny", "-o", "jsonpath={.spec.containers[*].ports[*].containerPort} {.status.podIP}")
	ports, address, _ := strings.Cut(out, " ")
	if ports != "5900" {
		t.Errorf("the pod has the ports %q, want SPICE's alone", ports)
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(address, vncPort))
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("port %s: %v", vncPort, err)
	}
	open := func() (io.ReadWriteCloser, error) { return inPod("tiny", "-vnc") }
	wrong, password := passwords(t)
	viewer, err := open()
	if err != nil {
		t.Fatal(err)
	}
	bound(t, viewer)
	if _, err := rfb.Handshake(viewer, wrong["a wrong password"]); !errors.Is(err, rfb.ErrRefused) {
		t.Errorf("a wrong password: %v", err)
	}
	_ = viewer.Close()
	viewer, screen := knocking(t, open, password)
	checkPicture(t, viewer, screen)
	checkConsole(t, viewer, "unix")
}

// buildCLI makes vmop-cli.
func buildCLI(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "vmop-cli")
	if out, err := exec.CommandContext(withPatience(t), "go", "build", "-trimpath", "-ldflags=-s", "-o", program, "github.com/vmop/sdk/frontends/cli").CombinedOutput(); err != nil {
		t.Fatalf("build vmop-cli: %v\n%s", err, out)
	}
	return program
}

// proxied is the address at which vmop-cli lets viewers through to a display, until
// the caller ends that, or patience does.
func proxied(t *testing.T, protocol, name string) (address string, end func()) {
	t.Helper()
	cmd := exec.CommandContext(withPatience(t), buildCLI(t), protocol, "--kubeconfig", theNode.Kubeconfig(), "-n", namespace, "--proxy-only", name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("vmop-cli %s --proxy-only says %q: %v, %v", protocol, line, err, cmd.Wait())
	}
	return strings.TrimSpace(line), func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("vmop-cli %s --proxy-only: %v", protocol, err)
		}
	}
}

// passwords are some that do not open the display, and the one that does.
func passwords(t *testing.T) (wrong map[string]string, right string) {
	t.Helper()
	stored := func() string {
		data := kubectl(t, "get", "secret", "-n", namespace, objects.DisplaySecretName("tiny"), "-o", "jsonpath={.data."+names.PasswordKey+"}")
		password, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		return string(password)
	}
	wrong = map[string]string{"a wrong password": "wrong"}
	generated := stored()
	cmd := exec.CommandContext(withPatience(t), buildCLI(t), "console-password", "--kubeconfig", theNode.Kubeconfig(), "-n", namespace, "--validity", "1h", "tiny")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	right = strings.TrimSpace(string(out))
	if right != stored() {
		t.Error("the password that the user is told is not that of the secret")
	}
	if generated != right { // nobody can use it before somebody asked
		wrong["the generated password"] = generated
	}
	return wrong, right
}

// knocking opens the display with a password that the machine may not know yet:
// the secret has to reach its pod.
func knocking(t *testing.T, open func() (io.ReadWriteCloser, error), password string) (conn io.ReadWriteCloser, screen rfb.Screen) {
	t.Helper()
	eventually(t, "the display opens", func() (err error) {
		if conn, err = open(); err != nil {
			return err
		}
		bound(t, conn)
		if screen, err = rfb.Handshake(conn, password); err != nil {
			_ = conn.Close()
		}
		return err
	})
	if !screen.Password {
		t.Error("the display asks for no password")
	}
	return conn, screen
}

// bound closes a connection that is used for longer than anything here takes:
// whoever reads from it learns of that, rather than of the end of all tests.
func bound(t *testing.T, conn io.Closer) {
	late := time.AfterFunc(2*time.Minute, func() { _ = conn.Close() })
	t.Cleanup(func() { late.Stop() })
}

func checkPicture(t *testing.T, conn io.ReadWriter, screen rfb.Screen) {
	t.Helper()
	picture, err := rfb.Picture(conn, screen)
	if err != nil {
		t.Fatal(err)
	}
	// What is on it depends on the firmware; there is no driver in the guest.
	t.Logf("the screen %q has %v pixels in %d colors", screen.Name, picture.Rect.Max, rfb.Colors(picture))
	if screen.Width < 640 || screen.Height < 400 {
		t.Errorf("the screen has %v pixels", picture.Rect.Max)
	}
}

// checkConsole looks for a viewer in the status and the events of the machine, and
// that it is gone from there when it has closed its connection.
func checkConsole(t *testing.T, viewer io.Closer, client string) {
	t.Helper()
	awaitCondition(t, "ConsoleConnected")
	awaitField(t, "consoleClient", client)
	t.Logf("with a viewer:\n%s", kubectl(t, "get", "vm", "-n", namespace, "tiny", "-o", "yaml"))
	if err := viewer.Close(); err != nil {
		t.Error(err)
	}
	awaitCondition(t, "ConsoleConnected=false")
	eventually(t, "the events of the viewer "+client, func() error {
		out, err := theNode.Kubectl(t.Context(), "get", "events", "-n", namespace, "--field-selector=involvedObject.kind=VirtualMachine")
		for _, want := range []string{"Connection from " + client, "Disconnected from " + client} {
			if err == nil && !strings.Contains(out, want) {
				err = errors.New(out)
			}
		}
		return err
	})
}
