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

// startTimeout limits a start: a multiple of the three seconds that it takes on an idle machine.
const startTimeout = 2 * time.Minute

// Options configure a control plane. The zero value is etcd and kube-apiserver.
type Options struct {
	// Controllers runs kube-controller-manager and kube-scheduler too. Without them, objects of
	// controllers are not created, dependents of deleted owners stay, and pods need no service
	// account.
	Controllers bool
	// Address is an address of this host by which nodes and their pods reach the API server too.
	// The host need not have it yet. nil means that only this host reaches it.
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

// component describes how a program is run and how its readiness is checked.
type component struct {
	name  string
	args  []string
	ready string // URL that answers 200
}

var errPortTaken = errors.New("a port was taken by somebody else")

// Start starts a control plane and waits until it is ready. If that fails, the error has the end of
// the log of the program that failed. [ControlPlane.Stop] must be called; if the calling process
// dies before, the control plane dies with it.
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

// Dir is the folder with the files of this control plane, such as the log of each program,
// <name>.log. [ControlPlane.Stop] removes it.
func (c *ControlPlane) Dir() string { return c.dir }

// Programs returns the folder with kubectl and the others.
func (c *ControlPlane) Programs() Programs { return c.programs }

// Config returns a client configuration with all rights and no rate limit. The caller may change
// it.
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

// Kubectl runs kubectl and returns its output. The error contains its standard error. kubectl wait
// fails for a new object without conditions yet; Kubectl waits for them.
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

// How often, and at which interval, kubectl wait is repeated: for a minute.
const (
	waitAttempts = 300
	waitPause    = 200 * time.Millisecond
)

func (c *ControlPlane) kubectl(ctx context.Context, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, c.programs.Path(Kubectl), args...)
	// HOME is where kubectl caches what it knows about servers.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "HOME="+c.dir)
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// StopAPIServer kills the API server, for tests of outages. Its objects stay in etcd. Connections
// to its address are refused, and no other process gets its port meanwhile, unless the kernel
// cannot reserve it.
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

// Stop kills the programs, waits for their end and removes the files. Further calls do nothing.
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

// releasePort frees the API server's port. The lock must be held.
func (c *ControlPlane) releasePort() {
	if c.kept != nil {
		_ = c.kept.Close()
		c.kept = nil
	}
}
