package goqemu_test

import (
	"context"
	"fmt"
	"log"

	"github.com/digitalocean/go-qemu/qmp/raw"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/goqemu"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

func Example() {
	// With a real QEMU: goqemu.Dial(ctx, "/run/vm/qmp.sock", qmp.Options{}).
	ctx := context.Background()
	near, _ := qmptest.Pipe(qmptest.Options{Handlers: map[string]qmptest.Handler{
		"query-name": func(c *qmptest.Call) { c.Return(map[string]any{"name": "example"}) },
	}})
	client, err := qmp.NewClient(ctx, near, qmp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	monitor := goqemu.New(ctx, client)
	if err := monitor.Connect(); err != nil {
		log.Fatal(err)
	}
	defer monitor.Disconnect()
	info, err := raw.NewMonitor(monitor).QueryName()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*info.Name)
	// Output: example
}
