package qga_test

import (
	"context"
	"fmt"
	"net"

	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qga/qgatest"
)

func Example() {
	// In earnest: client, err := qga.Dial(ctx, "/run/vm/org.qemu.guest_agent.0")
	near, far := net.Pipe()
	agent := &qgatest.Agent{Handlers: map[string]qgatest.Handler{
		"guest-get-osinfo": func(qgatest.Request) (any, error) {
			return map[string]string{"id": "debian", "version-id": "12"}, nil
		},
	}}
	go agent.Serve(far)
	client := qga.New(near)
	defer client.Close()

	info, err := client.OSInfo(context.Background())
	fmt.Println(info.ID, info.VersionID, err)
	// Output: debian 12 <nil>
}
