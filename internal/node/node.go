package node

import (
	"bytes"
	"context"
	_ "embed" // setup.sh
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vmop/sdk/internal/child"
	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/internal/ociimage"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Name is the name of the node.
const Name = "node"

const (
	// startTimeout limits a start, which takes about seven seconds on an idle host.
	startTimeout = 5 * time.Minute
	stopTimeout  = time.Minute
)

// Options configure a node. The zero value is useful.
type Options struct {
	// CacheDir and Progress are those of [controlplane.BuildOptions].
	CacheDir string
	Progress io.Writer
	// RootDevices leaves the device nodes of block volumes to root, which is containerd's default.
	// Otherwise they belong to the user of the container.
	RootDevices bool
}

// Node is a running node with its control plane.
type Node struct {
	*controlplane.ControlPlane
	// Client is a client with all rights.
	Client kubernetes.Interface

	slot     *slot
	progress io.Writer
	stopping context.CancelFunc
	volumes  sync.WaitGroup

	mu        sync.Mutex
	processes []*child.Process // in the order of their start; the first has the namespaces
	// programs are those within the node, in the order of their start.
	programs            []*program
	containerd, kubelet *program
}

//go:embed setup.sh
var setupScript string

// Start starts a control plane and a node, and waits until the node is ready for pods. [Node.Stop]
// must be called; if the calling process dies before, all programs and mounts die with it, and the
// next Start removes the rest.
func Start(ctx context.Context, o Options) (_ *Node, err error) {
	if err := Check(); err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	// Building may take longer than a start may.
	if _, err := controlplane.Ensure(ctx, controlplane.BuildOptions{CacheDir: o.CacheDir, Progress: o.Progress}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s, err := takeSlot(ctx)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	n := &Node{slot: s, progress: o.Progress, stopping: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("node: %w", err), n.Stop())
		}
	}()
	if err := n.isolate(ctx); err != nil {
		return nil, err
	}
	n.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Controllers: true, Address: s.hostAddress(), CacheDir: o.CacheDir, Progress: o.Progress,
	})
	if err != nil {
		return nil, err
	}
	if n.Client, err = kubernetes.NewForConfig(n.Config()); err != nil {
		return nil, err
	}
	if err := n.startContainerd(ctx, !o.RootDevices); err != nil {
		return nil, err
	}
	if err := n.startKubelet(ctx); err != nil {
		return nil, err
	}
	if err := n.awaitReady(ctx, time.Time{}); err != nil {
		return nil, err
	}
	n.startProvisioner()
	return n, nil
}

func (n *Node) isolate(ctx context.Context) error {
	pause := n.path("pause")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", pause, "github.com/vmop/sdk/internal/node/pause")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build pause: %w\n%s", err, out)
	}
	if err := makeControlGroups(n.slot.name()); err != nil {
		return err
	}
	const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	if err := n.start(child.Command{Name: "init", Path: pause, Dir: n.slot.dir, Namespaces: namespaces}); err != nil {
		return err
	}
	if err := n.slot.lay(ctx, n.processes[0].PID()); err != nil {
		return err
	}
	if _, err := n.run(ctx, "sh", "-eu", "-c", setupScript, "setup", n.slot.dir, Name); err != nil {
		return fmt.Errorf("file systems: %w", err)
	}
	return nil
}

func (n *Node) startContainerd(ctx context.Context, deviceOwnership bool) error {
	config := n.path("containerd.toml")
	err := writeFiles(map[string]string{
		config:                              containerdConfig(n.slot.dir, deviceOwnership),
		n.path("cni", "10-bridge.conflist"): networkConfig(n.slot.podNetwork()),
		n.path(resolvConf):                  "",
	})
	if err != nil {
		return err
	}
	n.containerd, err = n.startInside("containerd", "containerd", "--config", config, "--log-level", "warn")
	if err != nil {
		return err
	}
	if err := n.awaitContainerd(ctx); err != nil {
		return err
	}
	return n.Import(ctx, ociimage.Image{
		Name: pauseImage, Entrypoint: []string{"/pause"},
		Files: []ociimage.File{{Path: "/pause", Mode: 0o755, From: n.path("pause")}},
	})
}

func (n *Node) startKubelet(ctx context.Context) error {
	address := n.slot.nodeAddress()
	kubelet, err := n.Credentials("kubelet", "system:node:"+Name, []string{"system:nodes"}, []net.IP{address}, []string{Name})
	if err != nil {
		return err
	}
	proxy, err := n.Credentials("proxy", "system:kube-proxy", nil, nil, nil)
	if err != nil {
		return err
	}
	config, err := kubeletConfig(n.slot.dir, n.slot.name(), kubelet)
	if err != nil {
		return err
	}
	configFile := n.path("kubelet.json")
	if err := writeFiles(map[string]string{configFile: config}); err != nil {
		return err
	}
	n.kubelet, err = n.startInside("kubelet", n.Programs().Path(controlplane.Kubelet), "--config="+configFile, "--kubeconfig="+kubelet.Kubeconfig,
		"--hostname-override="+Name, "--node-ip="+address.String())
	if err != nil {
		return err
	}
	// The conntrack limits would be settings of the whole host.
	_, err = n.startInside("kube-proxy", n.Programs().Path(controlplane.KubeProxy), "--kubeconfig="+proxy.Kubeconfig,
		"--hostname-override="+Name, "--cluster-cidr="+n.slot.podNetwork(), "--proxy-mode=iptables",
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0")
	return err
}

func (n *Node) awaitContainerd(ctx context.Context) error {
	return n.await(ctx, n.containerd, func(ctx context.Context) error {
		_, err := n.run(ctx, "ctr", "version")
		return err
	})
}

// awaitReady waits until the kubelet has said since then that the node is ready. What one said
// before it was killed stays there, and a new one begins with a node that is not ready.
func (n *Node) awaitReady(ctx context.Context, since time.Time) error {
	since = since.Truncate(time.Second) // as precise as times in the API are
	return n.await(ctx, n.kubelet, func(ctx context.Context) error {
		node, err := n.Client.CoreV1().Nodes().Get(ctx, Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && (c.Status != corev1.ConditionTrue || c.LastHeartbeatTime.Time.Before(since)) {
				return fmt.Errorf("the node is not ready: Ready is %s as of %s: %s", c.Status, c.LastHeartbeatTime.UTC().Format(time.RFC3339), c.Message)
			}
		}
		if len(node.Status.Conditions) == 0 || len(node.Spec.Taints) > 0 {
			return fmt.Errorf("the node has %d conditions and the taints %v", len(node.Status.Conditions), node.Spec.Taints)
		}
		return nil
	})
}

// await repeats a question until it has a good answer, unless the program ends that is to give it.
func (n *Node) await(ctx context.Context, p *program, ask func(context.Context) error) error {
	process := p.process
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-process.Done():
			return fmt.Errorf("%s ended: %w; the end of its log:\n%s", p.name, process.Ended(), process.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w; the end of its log:\n%s", p.name, err, ctx.Err(), n.Log(p.name))
		case <-tick.C:
		}
	}
}

// Import imports an image into the node under its name. Pods must not pull it: name a tag, and not
// "latest".
func (n *Node) Import(ctx context.Context, image ociimage.Image) error {
	file := n.path("image.tar")
	if err := ociimage.Write(file, image); err != nil {
		return err
	}
	if err := n.ImportArchive(ctx, file); err != nil {
		return fmt.Errorf("image %s: %w", image.Name, err)
	}
	return os.Remove(file)
}

// ImportArchive imports the images of an archive, in OCI's format or docker's, under the names in
// it.
func (n *Node) ImportArchive(ctx context.Context, file string) error {
	_, err := n.run(ctx, "ctr", "--namespace", "k8s.io", "images", "import", file)
	return err
}

// Log returns the end of the log of containerd, kubelet, kube-proxy or a program of the control
// plane.
func (n *Node) Log(name string) string {
	if file := n.path(name + ".log"); exists(file) {
		return child.LogTail(file)
	}
	return n.ControlPlane.Log(name)
}

// Stop kills the node like a power cut, stops its control plane and removes their files. Further
// calls do nothing.
func (n *Node) Stop() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.slot == nil {
		return nil
	}
	n.stopping()
	n.volumes.Wait()
	for _, p := range n.processes { // the first takes the others with it
		p.Stop()
	}
	var errs []error
	if n.ControlPlane != nil {
		errs = append(errs, n.ControlPlane.Stop())
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	errs = append(errs, n.slot.release(ctx))
	n.slot = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}

func (n *Node) path(elements ...string) string {
	return filepath.Join(append([]string{n.slot.dir}, elements...)...)
}

func (n *Node) start(c child.Command) error {
	p, err := child.Start(c)
	if err == nil {
		n.processes = append(n.processes, p)
	}
	return err
}

// inside returns nsenter's arguments for a command in the node's namespaces.
func (n *Node) inside(args ...string) []string {
	return append([]string{"--target", strconv.Itoa(n.processes[0].PID()), "--mount", "--net", "--uts", "--ipc", "--pid", "--"}, args...)
}

// program is one within the node. Its process is nil while it is not to run.
type program struct {
	name    string
	args    []string
	process *child.Process
}

func (n *Node) startInside(name string, args ...string) (*program, error) {
	p := &program{name: name, args: args}
	if err := n.startAgain(p); err != nil {
		return nil, err
	}
	n.programs = append(n.programs, p)
	return p, nil
}

func (n *Node) startAgain(p *program) error {
	err := n.start(child.Command{Name: p.name, Path: "nsenter", Args: n.inside(p.args...), Dir: n.slot.dir})
	if err != nil {
		return err
	}
	p.process = n.processes[len(n.processes)-1]
	return nil
}

// Run runs a command in the namespaces of the node and returns its output.
func (n *Node) Run(ctx context.Context, args ...string) (string, error) { return n.run(ctx, args...) }

func (n *Node) run(ctx context.Context, args ...string) (string, error) {
	return run(ctx, "nsenter", n.inside(args...)...)
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
