package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/runner/tunnel"
)

const serveCommand = "serve"

const serveUsage = `Usage: vmop-runner serve [flags]

Serves one image to one who copies it, by HTTP within TLS, until TERM or INT: as
the pod beside a ClusterVirtualImage does, of which a disk of another namespace
is made. The image is only read. There is no machine in this process.

Flags:
`

type serveSettings struct{ path, listen, certificates, client string }

func parseServe(args []string, stdout io.Writer) (serveSettings, error) {
	var s serveSettings
	f := flag.NewFlagSet("vmop-runner serve", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.path, "image", "", "`path` of the image")
	f.StringVar(&s.listen, "listen", ":10812", "`address` to listen on")
	f.StringVar(&s.certificates, "certificates", "", "`directory` with tls.crt and tls.key, by which the server is known")
	f.StringVar(&s.client, "client", "", "`fingerprint` of the key of the only one who is served")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, serveUsage)
		f.SetOutput(stdout)
		f.PrintDefaults()
		return s, err
	}
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q; see vmop-runner serve -help", f.Arg(0))
	}
	for _, needed := range []struct{ flag, value string }{{"image", s.path}, {"certificates", s.certificates}, {"client", s.client}} {
		if err == nil && needed.value == "" {
			err = fmt.Errorf("-%s is missing; see vmop-runner serve -help", needed.flag)
		}
	}
	return s, err
}

func serveImage(args []string, stdout, stderr io.Writer) int {
	s, err := parseServe(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return runner.ExitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
		return runner.ExitUsage
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer runner.OnStopSignals(cancel)()
	l, err := net.Listen("tcp", s.listen)
	if err == nil {
		fmt.Fprintf(stdout, "serving %s at %s\n", s.path, l.Addr())
		err = s.serve(ctx, l, func(err error) { fmt.Fprintf(stderr, "vmop-runner: %v\n", err) })
	}
	if err != nil {
		fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
		if err := writeTermination("", []byte(err.Error())); err != nil {
			fmt.Fprintf(stderr, "vmop-runner: %v\n", err)
		}
		return runner.ExitStart
	}
	return runner.ExitOK
}

// serve serves the image until ctx ends, and then closes the listener. problem is called with the
// reason why a client was not served.
func (s serveSettings) serve(ctx context.Context, l net.Listener, problem func(error)) error {
	defer l.Close()
	own, err := tunnel.LoadIdentity(filepath.Join(s.certificates, "tls.crt"), filepath.Join(s.certificates, "tls.key"))
	if err != nil {
		return err
	}
	image, err := os.OpenFile(s.path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer image.Close()
	info, err := image.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Type() != 0 {
		return fmt.Errorf("%s is no file: %w", s.path, fs.ErrInvalid)
	}
	web := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(image, 0, info.Size()))
		}),
	}
	inside := &pipes{connections: make(chan net.Conn), closed: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(inside) }()
	out := tunnel.Server{Own: own, Client: s.client, Problem: problem, Open: inside.open}
	out.Serve(ctx, l)
	if err := errors.Join(web.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

func (p *pipes) open(ctx context.Context) (net.Conn, func(), error) {
	near, far := net.Pipe()
	select {
	case p.connections <- far:
		return near, func() {}, nil
	case <-ctx.Done():
		return nil, nil, errors.Join(context.Cause(ctx), near.Close(), far.Close())
	case <-p.closed:
		return nil, nil, errors.Join(net.ErrClosed, near.Close(), far.Close())
	}
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "inside", Net: "unix"} }
