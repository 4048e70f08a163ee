// Command vmop-agent logs users in and out of a guest on its host's behalf. See
// README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/vmop/sdk/examples/vmop-agent/agent"
)

// hostPause is the interval at which a closed port is tried again: the kernel does not wake a
// reader when the host comes back.
const hostPause = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "vmop-agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("vmop-agent", flag.ContinueOnError)
	device := flags.String("port", "", "device of the port (default: the port "+agent.PortName+")")
	login := flags.String("login", "", "program that logs a user in; the user is its only argument")
	logout := flags.String("logout", "", "program that logs the user out")
	timeout := flags.Duration("timeout", 50*time.Second, "how long these may take; the host waits for a minute")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *timeout <= 0 {
		return errors.New("unexpected arguments, or a timeout that is not positive; try -help")
	}
	action := func(path string) agent.Action {
		if path == "" {
			return agent.Nothing
		}
		return agent.Command(path, *timeout, os.Stderr)
	}
	path := *device
	if path == "" {
		var err error
		if path, err = agent.FindPort(agent.PortName); err != nil {
			return err
		}
	}
	port, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer port.Close()
	for {
		err := agent.Serve(ctx, port, action(*login), action(*logout))
		if !errors.Is(err, agent.ErrHostGone) {
			return err
		}
		select {
		case <-time.After(hostPause):
		case <-ctx.Done():
			return nil
		}
	}
}
