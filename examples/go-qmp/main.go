// Command go-qmp talks to a running QEMU: it prints the machine's state and
// block devices, and then its events until it ends.
//
//	go run ./examples/go-qmp PATH/qmp.sock
//
// A machine of vmop-cli has its socket for tools in its runtime directory,
// $XDG_RUNTIME_DIR/vmop/NAMESPACE/NAME/qmp.sock; in Go, host.Machine.Socket with
// qemucmd.SocketToolMonitor names it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: go-qmp SOCKET")
	}
	// A monitor with another client sends no greeting.
	c, err := qmp.Dial(ctx, args[0], qmp.Options{Handshake: 5 * time.Second})
	if err != nil {
		return err
	}
	defer c.Close()
	events := c.Subscribe(64) // before the request, so that no event in between is missed
	fmt.Println("QEMU", c.Greeting().Version)

	status, err := qmp.Do(ctx, c, qmp.QueryStatus{})
	if err != nil {
		return err
	}
	fmt.Println("the machine is", status.Status)

	blocks, err := qmp.Do(ctx, c, qmp.QueryBlock{})
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if b.Inserted != nil {
			fmt.Printf("%s: %s\n", b.QDev, b.Inserted.File)
		}
	}
	for e := range events.All(ctx) {
		fmt.Printf("%s %s %s\n", e.Timestamp.Format(time.TimeOnly), e.Name, e.Data)
	}
	return nil
}
