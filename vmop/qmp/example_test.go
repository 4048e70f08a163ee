package qmp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// monitor stands for QEMU, so that the examples run anywhere.
func monitor() net.Conn {
	near, _ := qmptest.Pipe(qmptest.Options{Handlers: map[string]qmptest.Handler{
		"query-status": func(c *qmptest.Call) { c.Return(map[string]any{"running": true, "status": "running"}) },
		"device_del":   func(c *qmptest.Call) { c.Fail("DeviceNotFound", "Device 'net7' not found") },
		"system_powerdown": func(c *qmptest.Call) {
			c.Return(nil)
			c.Server.Emit("SHUTDOWN", map[string]any{"guest": true, "reason": "guest-shutdown"})
			c.Server.Hangup()
		},
	}})
	return near
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// With a real QEMU: qmp.Dial(ctx, "/run/vm/qmp.sock", qmp.Options{}).
	client, err := qmp.NewClient(ctx, monitor(), qmp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	status, err := qmp.Do(ctx, client, qmp.QueryStatus{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("status:", status.Status)

	_, err = qmp.Do(ctx, client, qmp.DeviceDel{ID: "net7"})
	if errors.Is(err, qmp.ErrDeviceNotFound) {
		fmt.Println("already unplugged:", err)
	}

	raw, err := client.Execute(ctx, "query-status", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("raw:", string(raw))
	// Output:
	// status: running
	// already unplugged: qmp: device_del: Device 'net7' not found (DeviceNotFound)
	// raw: {"running":true,"status":"running"}
}

// A shutdown that waits for the guest: subscribe, ask, wait with a limit.
func ExampleClient_Subscribe() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := qmp.NewClient(ctx, monitor(), qmp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	events := client.Subscribe(8, "SHUTDOWN")
	defer events.Close()
	if _, err := qmp.Do(ctx, client, qmp.SystemPowerdown{}); err != nil {
		log.Fatal(err)
	}
	for e := range events.All(ctx) {
		shutdown, err := qmp.DecodeEvent[qmp.ShutdownEvent](e)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("machine ended:", shutdown.Reason)
	}
	fmt.Println("events ended:", events.Err())
	// Output:
	// machine ended: guest-shutdown
	// events ended: monitor connection lost: EOF
}

// SetLink is a command that this package has no type for.
type SetLink struct {
	Name string `json:"name"`
	Up   bool   `json:"up"`
}

// QMP implements qmp.Command.
func (SetLink) QMP() (string, qmp.None) { return "set_link", qmp.None{} }

func ExampleCommand() {
	unplugCable := func(ctx context.Context, c *qmp.Client) error {
		_, err := qmp.Do(ctx, c, SetLink{Name: "net0", Up: false})
		return err
	}
	_ = unplugCable
}
