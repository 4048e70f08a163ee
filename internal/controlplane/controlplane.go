package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vmop/sdk/internal/child"
)

// startTimeout is how long a start may take in all: a multiple of the three
// seconds that it takes on an idle machine.
const startTimeout = 2 * time.Minute

// Options choose a control plane. The zero value is etcd and kube-apiserver.
type Options struct {
	// Controllers runs kube-controller-manager and kube-scheduler too. Without
	// them no object makes another, deleted owners leave their objects behind,
	// and pods need no service account.
	Controllers bool
	// Address is one of this host's at which nodes and their pods reach the API
	// server too. The host need not have it yet. nil means that nobody but this
	// host reaches it.
	Address net.IP
	// CacheDir and Progress are those of [BuildOptions].
	CacheDir string
	Progress io.Writer
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	dir       string
	programs  Programs
	config    *rest.Config
	authority *authority
	server    string // URL for nodes, "" if they have none

	etcd, apiServer, controllerManager, scheduler component

	apiPort int

	mu      sync.Mutex
	running map[string]*child.Process
	kept    *os.File // the API server's port while it is stopped
}

// component is how a program is run and how its readiness is asked for.
type component struct {
	name  string
	args  []string
	ready string // URL that answers 200
}

// errPortTaken tells that a port which was free a moment ago is not any more.
var errPortTaken = errors.New("a port was taken by somebody else")

// Start starts a control plane and waits until it is ready. If that fails, the
// error has the end of the log of what failed. [ControlPlane.Stop] has to be
// called; should the calling process die before, its control plane dies with it.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	programs, err := Ensure(ctx, BuildOptions{CacheDir: o.CacheDir, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	return start(ctx, programs, o, freePorts)
}

func start(ctx context.Context, programs Programs, o Options, freePorts func(int) ([]int, error)) (*ControlPlane, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	const attempts = 3
	for attempt := 1; ; attempt++ {
		c, err := startOnce(ctx, programs, o, freePorts)
		if err == nil {
			return c, nil
		}
		if attempt == attempts || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("control plane: %w", err)
		}
	}
}

func startOnce(ctx context.Context, programs Programs, o Options, freePorts func(int) ([]int, error)) (_ *ControlPlane, err error) {
	dir, err := os.MkdirTemp("", "vmop-controlplane-")
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{dir: dir, programs: programs, running: map[string]*child.Process{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	free, err := freePorts(5)
	if err != nil {
		return nil, err
	}
	at := ports{etcd: free[0], peer: free[1], api: free[2], manager: free[3], scheduler: free[4]}
	if err := c.configure(at, o); err != nil {
		return nil, err
	}
	components := []component{c.etcd, c.apiServer}
	if o.Controllers {
		components = append(components, c.controllerManager, c.scheduler)
	}
	for _, comp := range components {
		if err := c.run(ctx, comp); err != nil {
			return nil, err
		}
	}
	if o.Controllers { // pods are refused before
		return c, c.await(ctx, c.controllerManager.name, c.config.Host+"/api/v1/namespaces/default/serviceaccounts/default")
	}
	return c, nil
}

// run starts a component and waits until it is ready.
func (c *ControlPlane) run(ctx context.Context, comp component) error {
	p, err := child.Start(child.Command{Name: comp.name, Path: c.programs.Path(comp.name), Args: comp.args, Dir: c.dir})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.running[comp.name] = p
	c.mu.Unlock()
	return c.await(ctx, comp.name, comp.ready)
}

// Dir is the folder with the files of this control plane, such as the log of
// each program, <name>.log. [ControlPlane.Stop] removes it.
func (c *ControlPlane) Dir() string { return c.dir }

// Programs returns the folder with kubectl and the others.
func (c *ControlPlane) Programs() Programs { return c.programs }

// Config returns the configuration of a client that may do everything and has
// no rate limit of its own. It is the caller's to change.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of a kubeconfig file for the same user.
func (c *ControlPlane) Kubeconfig() string { return c.kubeconfig("admin") }

func (c *ControlPlane) kubeconfig(user string) string {
	return filepath.Join(c.dir, user+".kubeconfig")
}

// Log returns the end of the log of one of [ProgramNames].
func (c *ControlPlane) Log(name string) string {
	return child.LogTail(filepath.Join(c.dir, name+".log"))
}

// Kubectl runs kubectl and returns what it printed. Its error has what it said
// on its standard error. kubectl wait gives up when an object that was just made has no
// conditions yet; here it waits for them.
func (c *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	for attempt := 0; ; attempt++ {
		out, err := c.kubectl(ctx, args)
		if err == nil || args[0] != "wait" || attempt == waitAttempts || !strings.Contains(err.Error(), ".status.conditions accessor error: <nil>") {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(waitPause):
		}
	}
}

// How often kubectl wait is tried again, and after which time: for a minute.
const (
	waitAttempts = 300
	waitPause    = 200 * time.Millisecond
)

func (c *ControlPlane) kubectl(ctx context.Context, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, c.programs.Path(Kubectl), args...)
	// HOME is where kubectl keeps what it knows about servers.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "HOME="+c.dir)
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// StopAPIServer kills the API server, for tests of what works without. Its
// objects stay in etcd. Connections to its address are refused, and nobody else gets
// its port meanwhile, unless the kernel cannot keep it.
func (c *ControlPlane) StopAPIServer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.running[APIServer]
	if p == nil {
		return
	}
	delete(c.running, APIServer)
	p.Stop()
	c.kept = keepPort(c.apiPort)
}

// StartAPIServer starts the API server again at the same address, after
// [ControlPlane.StopAPIServer], and waits until it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c.mu.Lock()
	running := c.running[APIServer] != nil
	if !running {
		c.releasePort()
	}
	c.mu.Unlock()
	if running {
		return errors.New("control plane: the API server runs already")
	}
	if err := c.run(ctx, c.apiServer); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	return nil
}

// Stop kills what runs, waits for its end and removes its files. It may be
// called again, and does nothing then.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{Scheduler, ControllerManager, APIServer, Etcd} {
		if p := c.running[name]; p != nil {
			p.Stop()
			delete(c.running, name)
		}
	}
	c.releasePort()
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	return nil
}

// releasePort gives the API server's port back. The lock is held.
func (c *ControlPlane) releasePort() {
	if c.kept != nil {
		_ = c.kept.Close()
		c.kept = nil
	}
}
