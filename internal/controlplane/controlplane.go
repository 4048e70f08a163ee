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
	"strconv"
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

	mu      sync.Mutex
	running map[string]*child.Process
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

func start(ctx context.Context, programs Programs, o Options, ports func(int) ([]int, error)) (*ControlPlane, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	const attempts = 3
	for attempt := 1; ; attempt++ {
		c, err := startOnce(ctx, programs, o, ports)
		if err == nil {
			return c, nil
		}
		if attempt == attempts || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("control plane: %w", err)
		}
	}
}

func startOnce(ctx context.Context, programs Programs, o Options, ports func(int) ([]int, error)) (_ *ControlPlane, err error) {
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
	free, err := ports(5)
	if err != nil {
		return nil, err
	}
	if err := c.configure(free, o); err != nil {
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

// configure makes the certificates, the files and the command lines.
func (c *ControlPlane) configure(ports []int, o Options) error {
	etcdPort, peerPort, apiPort, managerPort, schedulerPort := ports[0], ports[1], ports[2], ports[3], ports[4]
	ca, err := newAuthority(c.dir)
	if err != nil {
		return err
	}
	c.authority = ca
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	if o.Address != nil {
		addresses = append(addresses, o.Address)
	}
	issue := func(file, user string, groups ...string) (id identity) {
		if err == nil {
			id, err = ca.issue(file, user, groups, addresses,
				[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"})
		}
		return id
	}
	store := issue(Etcd, "etcd")
	server := issue(APIServer, "kube-apiserver")
	accounts := issue("service-accounts", "service-accounts")
	frontProxy := issue("front-proxy", "front-proxy-client")
	admin := issue("admin", "admin", "system:masters")
	manager := issue(ControllerManager, "system:kube-controller-manager")
	scheduler := issue(Scheduler, "system:kube-scheduler")
	kubelets := issue("kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}

	host := fmt.Sprintf("https://127.0.0.1:%d", apiPort)
	c.config = &rest.Config{
		Host:            host,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem, CertData: admin.certPEM, KeyData: admin.keyPEM},
		QPS:             -1, // tests are not to wait for their own client
	}
	for file, id := range map[string]identity{c.Kubeconfig(): admin, c.kubeconfig(ControllerManager): manager, c.kubeconfig(Scheduler): scheduler} {
		if err := writeKubeconfig(file, host, ca.pem, id); err != nil {
			return err
		}
	}

	etcdURL, peerURL := fmt.Sprintf("https://127.0.0.1:%d", etcdPort), fmt.Sprintf("https://127.0.0.1:%d", peerPort)
	c.etcd = component{name: Etcd, ready: etcdURL + "/readyz", args: []string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--unsafe-no-fsync", // nothing has to survive
		"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=default=" + peerURL,
		// Certificates also tell this etcd from one of somebody else at the same port.
		"--cert-file=" + store.certFile, "--key-file=" + store.keyFile,
		"--trusted-ca-file=" + ca.certFile(), "--client-cert-auth",
		"--peer-cert-file=" + store.certFile, "--peer-key-file=" + store.keyFile,
		"--peer-trusted-ca-file=" + ca.certFile(), "--peer-client-cert-auth",
	}}
	c.apiServer = component{name: APIServer, ready: host + "/readyz", args: []string{
		"--etcd-servers=" + etcdURL, "--etcd-cafile=" + ca.certFile(),
		"--etcd-certfile=" + store.certFile, "--etcd-keyfile=" + store.keyFile,
		fmt.Sprintf("--secure-port=%d", apiPort),
		"--tls-cert-file=" + server.certFile, "--tls-private-key-file=" + server.keyFile,
		"--client-ca-file=" + ca.certFile(),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + accounts.certFile, "--service-account-signing-key-file=" + accounts.keyFile,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
		"--requestheader-client-ca-file=" + ca.certFile(), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + frontProxy.certFile, "--proxy-client-key-file=" + frontProxy.keyFile,
		"--profiling=false",
	}}
	if o.Address == nil {
		// Endpoints must not have a loopback address, so the Service "kubernetes" has none.
		c.apiServer.args = append(c.apiServer.args, "--bind-address=127.0.0.1", "--endpoint-reconciler-type=none")
	} else {
		c.server = fmt.Sprintf("https://%s", net.JoinHostPort(o.Address.String(), strconv.Itoa(apiPort)))
		c.apiServer.args = append(c.apiServer.args, "--bind-address=0.0.0.0", "--advertise-address="+o.Address.String(),
			"--kubelet-client-certificate="+kubelets.certFile, "--kubelet-client-key="+kubelets.keyFile,
			"--kubelet-certificate-authority="+ca.certFile(), "--kubelet-preferred-address-types=InternalIP")
	}
	if !o.Controllers { // nobody makes the account "default" that pods would need
		c.apiServer.args = append(c.apiServer.args, "--disable-admission-plugins=ServiceAccount")
	}
	c.controllerManager = component{name: ControllerManager, ready: fmt.Sprintf("https://127.0.0.1:%d/healthz", managerPort), args: []string{
		"--kubeconfig=" + c.kubeconfig(ControllerManager),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", managerPort),
		"--tls-cert-file=" + manager.certFile, "--tls-private-key-file=" + manager.keyFile,
		"--use-service-account-credentials=true", "--service-account-private-key-file=" + accounts.keyFile,
		"--root-ca-file=" + ca.certFile(), "--requestheader-client-ca-file=" + ca.certFile(),
		"--cluster-signing-cert-file=" + ca.certFile(), "--cluster-signing-key-file=" + ca.keyFile(),
		"--leader-elect=false", "--profiling=false",
		"--controllers=*,-node-ipam-controller,-cloud-node-lifecycle-controller",
		// At the default rate, the first service account comes after five seconds.
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	}}
	c.scheduler = component{name: Scheduler, ready: fmt.Sprintf("https://127.0.0.1:%d/readyz", schedulerPort), args: []string{
		"--kubeconfig=" + c.kubeconfig(Scheduler),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", schedulerPort),
		"--tls-cert-file=" + scheduler.certFile, "--tls-private-key-file=" + scheduler.keyFile,
		"--leader-elect=false", "--profiling=false",
	}}
	return nil
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
// on its standard error.
func (c *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
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
// objects stay in etcd.
func (c *ControlPlane) StopAPIServer() {
	c.mu.Lock()
	p := c.running[APIServer]
	delete(c.running, APIServer)
	c.mu.Unlock()
	if p != nil {
		p.Stop()
	}
}

// StartAPIServer starts the API server again at the same address, after
// [ControlPlane.StopAPIServer], and waits until it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c.mu.Lock()
	running := c.running[APIServer] != nil
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
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	return nil
}
