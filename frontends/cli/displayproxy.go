package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/output"
)

func displayFlags() []cli.Flag {
	return eitherFlags(machineFlags(
		&cli.BoolFlag{Name: "print", Usage: "print the connection, and start no viewer", DisableDefaultText: true},
		&cli.BoolFlag{Name: "proxy-only", Usage: "listen on a port of 127.0.0.1 for any viewer, until Ctrl-C", DisableDefaultText: true},
		&cli.IntFlag{Name: "port", Usage: "the `PORT` of --proxy-only", DefaultText: "any that is free"},
		outputFlag("--print and --proxy-only", formatText),
		&cli.StringFlag{Name: "file", Usage: "in a cluster: write a `FILE` for remote-viewer, with the password; - is standard output"},
		&cli.BoolFlag{Name: "forward", Usage: "in a cluster: go through the API server to the pod, also where there is another way", DisableDefaultText: true},
		&cli.DurationFlag{Name: "validity", Usage: "in a cluster: a new password is valid for this `DURATION`", DefaultText: "VM-Operator's passwordValidity, or 10s"},
		&cli.StringFlag{Name: "user", Usage: "in a cluster: `NAME` of the user whose console it is (default: yours on this host)"},
	)...)
}

func checkDisplayFlags(c *cli.Context) error {
	if _, err := outputFormat(c, formatText); err != nil {
		return err
	}
	switch {
	case c.Bool("print") && c.Bool("proxy-only"):
		return usagef(c, "want --print or --proxy-only, not both")
	case !inCluster(c) && (c.IsSet("file") || c.IsSet("forward") || c.IsSet("validity") || c.IsSet("user")):
		return usagef(c, "--file, --forward, --validity and --user are for a cluster (--cluster, --context or --kubeconfig)")
	case c.String("file") != "" && (c.Bool("print") || c.Bool("proxy-only")):
		return usagef(c, "want --file, --print or --proxy-only, one of them")
	case c.IsSet("validity") && c.Duration("validity") < time.Second:
		return usagef(c, "--validity %v: want at least a second", c.Duration("validity"))
	case c.IsSet("output") && !c.Bool("print") && !c.Bool("proxy-only"):
		return usagef(c, "--output is for --print and --proxy-only")
	case c.IsSet("port") && !c.Bool("proxy-only"):
		return usagef(c, "--port is for --proxy-only")
	case c.Int("port") < 0 || c.Int("port") > 65535:
		return usagef(c, "--port %d: want 0 to 65535", c.Int("port"))
	}
	return nil
}

// proxyDisplay lets viewers connect by a port of the loopback interface until ctx ends. All users
// of this host can connect to it, so it warns if the display has no password.
func (p *program) proxyDisplay(ctx context.Context, c *cli.Context, d displayConnection) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Int("port"))))
	if err != nil {
		return err
	}
	if d.Auth == "none" && d.Socket != "" {
		fmt.Fprintln(p.stderr, "The display has no password: every user of this host can open it while this runs.")
	}
	r := &output.DisplayProxy{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
	if format := c.String("output"); forPrograms(format) {
		err = p.printOne(format, r)
	} else {
		_, err = fmt.Fprintln(p.stdout, net.JoinHostPort(r.Host, strconv.Itoa(r.Port)))
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	network, address := "unix", d.Socket
	if d.Socket == "" {
		network, address = "tcp", net.JoinHostPort(d.Host, strconv.Itoa(d.Port))
	}
	return relay(ctx, l, network, address, func(err error) { fmt.Fprintln(p.stderr, err) })
}

const acceptRetry = time.Second

// relay connects each connection that l accepts to address, until ctx ends, and waits for all of
// them to end. It closes l.
func relay(ctx context.Context, l net.Listener, network, address string, problem func(error)) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer l.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex // problem is called from many connections
	for {
		near, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = near.Close()
			}
			return nil // as requested
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // such as too many open files, which is temporary
			mu.Lock()
			problem(err)
			mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(acceptRetry):
			}
			continue
		}
		wg.Go(func() {
			if err := relayOne(ctx, near, network, address); err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				problem(err)
			}
		})
	}
}

const dialDeadline = 10 * time.Second

// relayOne serves one connection. Its end by the viewer or the display is not an error.
func relayOne(ctx context.Context, near net.Conn, network, address string) error {
	defer near.Close()
	far, err := (&net.Dialer{Timeout: dialDeadline}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	defer far.Close()
	stop := context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })
	defer stop()
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		wg.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if c, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = c.CloseWrite() // the other direction may still have data
			}
		})
	}
	wg.Wait()
	return nil
}
