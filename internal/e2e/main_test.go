//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/node"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/testimages"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop"
)

const (
	// patience bounds every wait: for a pod, a guest, a volume.
	patience  = 8 * time.Minute
	namespace = "machines"
	// guestOffset is a place on the machine's disk that the guest's system does
	// not use.
	guestOffset = 60 << 20
)

// theNode is the node of all tests of this package.
var theNode *node.Node

// scratch has the image of the guest's disk; images the archives of images.
var scratch, images string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code, err := runTests(context.Background(), m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func runTests(ctx context.Context, m *testing.M) (code int, err error) {
	if scratch, err = os.MkdirTemp("", "vmop-e2e-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if images, err = testimages.Ensure(ctx, filepath.Join("..", ".."), scratch, os.Stderr); err != nil {
		return 0, err
	}
	if theNode, err = node.Start(ctx, node.Options{Progress: os.Stderr}); err != nil {
		return 0, err
	}
	n := theNode // a test may have another one for a while
	defer func() { err = errors.Join(err, n.Stop()) }()
	return m.Run(), nil
}

// kubectl runs kubectl, or fails the test.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := theNode.Kubectl(withPatience(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply applies a manifest, or fails the test.
func apply(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "apply", "-f", file)
}

func withPatience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually repeats a question until it has a good answer.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// explainOnFailure shows what the cluster knows, should the test fail.
func explainOnFailure(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, args := range [][]string{
			{"describe", "pods,pvc", "-n", namespace}, {"get", "vms", "-n", namespace, "-o", "yaml"},
			{"logs", "-n", namespace, "-l", "app.kubernetes.io/name=vm-runner", "--tail=100"},
			{"get", "events", "-n", namespace, "--sort-by=.lastTimestamp"},
		} {
			out, err := theNode.Kubectl(context.Background(), args...)
			t.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		showProcessors(t)
		t.Logf("kubelet:\n%s\ncontainerd:\n%s", theNode.Log("kubelet"), theNode.Log("containerd"))
	})
}

var toolsSocket = regexp.MustCompile(`,path=([^,]+/qmp\.sock),`)

// showProcessors shows what the processors of the machine on the node do, as QEMU knows them. The
// processes have other numbers outside of the node.
func showProcessors(t *testing.T) {
	t.Helper()
	inside, err := theNode.Run(context.Background(), "sh", "-c", "for q in $("+listQEMUs+"); do readlink ${q%/cmdline}/ns/pid; done")
	if err != nil {
		t.Log(err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, file := range all {
		process := filepath.Dir(filepath.Dir(file))
		namespace, _ := os.Readlink(file)
		arguments, _ := os.ReadFile(process + "/cmdline")
		socket := toolsSocket.FindSubmatch(arguments)
		if socket != nil && slices.Contains(strings.Fields(inside), namespace) && bytes.Contains(arguments, []byte("\x00guest=tiny,")) {
			t.Logf("processors of the QEMU in %s:\n%s", process, tinyguest.Processors(context.Background(), process+"/root"+string(socket[1])))
		}
	}
}

// prepare makes what a cluster has before its first machine: the images, a
// storage class whose volumes hold an installed system, and an empty namespace
// that admits no pod with privileges.
func prepare(t *testing.T) {
	t.Helper()
	prepareNode(t)
	apply(t, `
apiVersion: v1
kind: Namespace
metadata:
  name: machines
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: machines, name: vm-runner}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: machines, name: vmop-image-repository}
spec:
  accessModes: [ReadOnlyMany]
  resources: {requests: {storage: 1Mi}}
`)
	t.Cleanup(func() { kubectl(t, "delete", "namespace", namespace, "--wait=true") })
}

// prepared are the nodes that have images and storage classes.
var prepared = map[*node.Node]bool{}

func prepareNode(t *testing.T) {
	t.Helper()
	if prepared[theNode] {
		return
	}
	prepared[theNode] = true
	ctx := withPatience(t)
	guest := testbin.TinyGuest(t)
	disk := filepath.Join(scratch, "disk.img")
	_ = os.Remove(disk)
	if err := guest.WriteDisk(ctx, disk); err != nil {
		t.Fatalf("%v\nwhat it is made with is installed by \"make deps-e2e\"", err)
	}
	for _, image := range []string{runnerImage, operatorImage} {
		if err := theNode.ImportArchive(ctx, archive(image)); err != nil {
			t.Fatal(err)
		}
	}
	for _, class := range []node.StorageClass{{Name: "tiny-guest", Image: disk}, {Name: "local", Default: true}} {
		if err := theNode.AddStorageClass(ctx, class); err != nil {
			t.Fatal(err)
		}
	}
}

// machine is the machine of a file, changed.
func machine(t *testing.T, file string, change func(*vmop.VirtualMachine)) *vmop.VirtualMachine {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	machines, err := vmop.Load(file, data)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(machines[0])
	}
	return machines[0]
}

// podProgram is a program in a pod as something to read from and to write to.
type podProgram struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
}

// Close ends the connection.
func (p *podProgram) Close() error {
	err := p.WriteCloser.Close()
	_ = p.cmd.Process.Kill() // a console has no other way to end while the machine runs
	_ = p.cmd.Wait()
	return err
}

// kubectlEnv is the environment of a kubectl for the node.
func kubectlEnv() []string {
	return append(os.Environ(), "KUBECONFIG="+theNode.Kubeconfig(), "HOME="+theNode.Dir())
}

// inPod starts the runner's program beside it, as a user does.
func inPod(pod, flag string) (*podProgram, error) {
	cmd := exec.Command(theNode.Programs().Path("kubectl"), "exec", "-i", "-n", namespace, pod, "--", "vmop-runner", flag)
	cmd.Env = kubectlEnv()
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &podProgram{Reader: out, WriteCloser: in, cmd: cmd}, cmd.Start()
}

// console opens the serial console of a machine as a user does, and waits until
// the guest has booted.
func console(t *testing.T, pod string) *tinyguest.Console {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		program, err := inPod(pod, "-console")
		if err != nil {
			t.Fatal(err)
		}
		c := tinyguest.NewConsole(program)
		t.Cleanup(func() { _ = c.Close() })
		err = c.WaitReady(withPatience(t))
		if err == nil {
			return c
		}
		// A pod is ready when its runner has started, which then starts QEMU.
		if !errors.Is(err, io.EOF) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// say types a command at the guest's console and returns the answer.
func say(t *testing.T, c *tinyguest.Console, line string) string {
	t.Helper()
	out, err := c.Command(withPatience(t), line)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
