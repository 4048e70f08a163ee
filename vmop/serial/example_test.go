package serial_test

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/vmop/sdk/vmop/serial"
)

// A view shows what comes until the machine ends. Here somebody else plays the machine,
// whose console host.Machine.Console connects to.
func ExampleView() {
	conn, machine := net.Pipe()
	go func() {
		fmt.Fprintln(machine, "login:")
		_ = machine.Close()
	}()
	view := serial.View{Conn: conn, Stdout: os.Stdout}
	end, err := view.Run(context.Background())
	fmt.Println(end == serial.MachineEnded, err)
	// Output:
	// login:
	// true <nil>
}
