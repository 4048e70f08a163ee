package tinyguest_test

import (
	"context"
	"fmt"
	"net"

	"github.com/vmop/sdk/internal/tinyguest"
)

func ExampleEnsure() {
	ctx := context.Background()
	guest, err := tinyguest.Ensure(ctx, tinyguest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("qemu-system-x86_64 -machine q35 -m 128 -nographic",
		"-kernel", guest.Kernel, "-initrd", guest.Initrd, "-append", tinyguest.CommandLine)
}

func ExampleConsole() {
	ctx := context.Background()
	conn, err := net.Dial("unix", "/run/user/1000/machine/console")
	if err != nil {
		fmt.Println(err)
		return
	}
	console := tinyguest.NewConsole(conn)
	defer console.Close()
	if err := console.WaitReady(ctx); err != nil {
		fmt.Println(err)
		return
	}
	out, err := console.Command(ctx, "cpus")
	fmt.Println(out, err)
}
