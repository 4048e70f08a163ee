package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

const clusterDisplayHelp = "In a cluster, remote-viewer is started with the password in a file of its own. It connects to\n" +
	"spec.vm.display.spice.server if the manifest has it, through proxyUrl likewise, or to the node\n" +
	"where the port of the display is one of the node's. Any other display is reached through the\n" +
	"API server (as by kubectl port-forward), by a port of 127.0.0.1 that lasts as long as the\n" +
	"viewer. A password that has expired is replaced.\n\n"

// clusterDisplay is the connection of a viewer to the display of a machine in a cluster.
type clusterDisplay struct {
	*program
	c               *cli.Context
	client          *cluster.Client
	namespace, name string
	vm              *spec.VirtualMachine
	pod             string
	options         displayOptions
	place           console.Place
	// forwarding is set if place is the local end of a tunnel.
	forwarding *cluster.Forwarding
}

type displayOptions struct {
	validity time.Duration
	keepFile bool
	family   console.Family
}

func (p *program) openClusterDisplay(c *cli.Context, protocol console.Protocol) (err error) {
	if err := checkDisplayFlags(c); err != nil {
		return err
	}
	d := &clusterDisplay{program: p, c: c}
	if d.client, d.namespace, d.name, err = p.clusterMachine(c); err != nil {
		return err
	}
	ctx, stop := bounded(c, 0, "")
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	// The tunnel must end before this returns.
	defer func() {
		cancel()
		if d.forwarding != nil {
			err = errors.Join(err, d.forwarding.Wait())
		}
	}()
	if err := d.find(ctx, protocol); err != nil {
		return err
	}
	switch file := c.String("file"); {
	case c.Bool("print"):
		return d.print()
	case c.Bool("proxy-only"):
		return d.proxy(ctx)
	case file != "":
		return d.write(ctx, file)
	}
	return d.view(ctx)
}

func (d *clusterDisplay) find(ctx context.Context, protocol console.Protocol) error {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("the API server did not answer after %v", requestTimeout))
	defer cancel()
	var err error
	if d.vm, err = d.client.Machine(ctx, d.namespace, d.name); err != nil {
		return err
	}
	pod, err := d.client.MachinePod(ctx, d.vm)
	if err != nil {
		return err
	}
	config := d.client.Console(ctx, d.namespace)
	d.pod = pod.Name
	d.options = displayOptions{validity: config.PasswordValidity, keepFile: config.KeepFile, family: config.PreferredFamily}
	if d.c.IsSet("validity") {
		d.options.validity = d.c.Duration("validity")
	}
	d.place, err = console.Locate(d.vm, pod, protocol, d.options.family)
	return err
}

func (d *clusterDisplay) tunnels() bool {
	return d.c.Bool("forward") || d.place.Tunnel && d.place.Proxy == ""
}

func (d *clusterDisplay) tunnel(ctx context.Context) (err error) {
	d.forwarding, err = d.client.Forward(ctx, d.namespace, d.pod, d.c.Int("port"), d.place.PodPort, d.stderr)
	if err != nil {
		return err
	}
	d.place.Host, d.place.Port, d.place.Proxy = "127.0.0.1", d.forwarding.Port, ""
	return nil
}

// open reports whether the display needs no password, as far as the runner has reported.
func (d *clusterDisplay) open() bool { return d.vm.Status.DisplayPasswordSerial < 0 }

func (d *clusterDisplay) print() error {
	at := displayConnection{Protocol: string(d.place.Protocol), Host: d.place.Host, Port: d.place.Port, Auth: string(d.place.Protocol)}
	if d.open() {
		at.Auth = "none"
	}
	at.URI = at.Protocol + "://" + net.JoinHostPort(at.Host, strconv.Itoa(at.Port))
	if format := d.c.String("output"); forPrograms(format) {
		return d.printOne(format, printedConnection(at))
	}
	_, err := fmt.Fprintln(d.stdout, textout.Cell(at.URI))
	if d.tunnels() {
		d.note("This address is the pod's: viewers outside of the cluster need --proxy-only.")
	}
	return err
}

func (d *clusterDisplay) proxy(ctx context.Context) error {
	if err := d.tunnel(ctx); err != nil {
		return err
	}
	if d.open() {
		fmt.Fprintln(d.stderr, "The display has no password: every user of this host can open it while this runs.")
	}
	r := &output.DisplayProxy{Host: d.place.Host, Port: d.place.Port}
	var err error
	if format := d.c.String("output"); forPrograms(format) {
		err = d.printOne(format, r)
	} else {
		_, err = fmt.Fprintln(d.stdout, net.JoinHostPort(r.Host, strconv.Itoa(r.Port)))
	}
	return errors.Join(err, d.tunnelEnds())
}

func (d *clusterDisplay) tunnelEnds() error {
	f := d.forwarding
	d.forwarding = nil
	return f.Wait()
}

func (d *clusterDisplay) password(ctx context.Context) (string, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("make a password: %w", err)
	}
	who := d.c.String("user")
	if who == "" {
		who = userName()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("the API server did not answer after %v", requestTimeout))
	defer cancel()
	password, err := d.client.ConsolePassword(ctx, d.namespace, d.name, who, objects.Password(random), d.options.validity)
	if errors.Is(err, cluster.ErrNoPassword) {
		return "", nil
	}
	return password, err
}

func (d *clusterDisplay) file(ctx context.Context, password string) ([]byte, error) {
	f := console.ViewerFile{
		Protocol: d.place.Protocol, Host: d.place.Host, Port: d.place.Port, Proxy: d.place.Proxy,
		Password: password, Title: d.namespace + "/" + d.name, DeleteThisFile: !d.options.keepFile,
	}
	if d.place.TLSSecret != "" {
		ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("the API server did not answer after %v", requestTimeout))
		defer cancel()
		secret, err := d.client.Secret(ctx, d.namespace, d.place.TLSSecret)
		if err != nil {
			return nil, err
		}
		f.TLS = true
		if f.Authorities, f.Subject, err = console.Certificate(secret); err != nil {
			return nil, err
		}
	}
	return f.Marshal()
}

// connect creates a tunnel if one is needed, and only then the viewer file: its password soon
// expires.
func (d *clusterDisplay) connect(ctx context.Context) ([]byte, error) {
	if d.tunnels() {
		if err := d.tunnel(ctx); err != nil {
			return nil, err
		}
	}
	password, err := d.password(ctx)
	if err != nil {
		return nil, err
	}
	return d.file(ctx, password)
}

// write keeps a viewer file for as long as its connection exists.
func (d *clusterDisplay) write(ctx context.Context, name string) error {
	file, err := d.connect(ctx)
	if err != nil {
		return err
	}
	if name == "-" {
		_, err = d.stdout.Write(file)
	} else {
		err = atomicfile.Replace(name, file)
	}
	if err != nil || d.forwarding == nil {
		return err
	}
	fmt.Fprintf(d.stderr, "The display is at port %d of this host until Ctrl-C.\n", d.place.Port)
	err = d.tunnelEnds()
	if name != "-" {
		err = errors.Join(err, removeFile(name))
	}
	return err
}

// removeFile tolerates that a viewer has removed the file.
func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d *clusterDisplay) view(ctx context.Context) (err error) {
	path, lookErr := exec.LookPath("remote-viewer")
	if lookErr != nil {
		return fmt.Errorf("no viewer is installed to open this: Debian, Ubuntu and Fedora have remote-viewer in the package virt-viewer; --file FILE writes a file for a viewer, and --proxy-only lets any viewer through")
	}
	file, err := d.connect(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vmop-viewer-") // accessible to its owner only
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, "display"+console.FileExtension)
	if err := os.WriteFile(name, file, 0o600); err != nil {
		return err
	}
	return d.runViewer(ctx, path, []string{"--", name})
}
