package main

import (
	"errors"
	"fmt"
	"io"
	"net"
)

// connectVNC connects the streams, behind which is a VNC viewer, to the server of the machine that
// another vmop-runner runs with the same configuration, until either end closes. It opens the
// socket as the machine's owner.
func connectVNC(config string, stdin io.Reader, stdout io.Writer) error {
	_, c, _, err := readConfig(config)
	if err != nil {
		return err
	}
	socket := ""
	if d := c.Runner.VM.Display; d != nil && d.VNC != nil {
		socket = d.VNC.Socket
	}
	if socket == "" {
		return fmt.Errorf("the machine %s has no VNC server on a UNIX socket", c.Runner.VM.Name)
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: socket})
	if err != nil {
		return fmt.Errorf("the VNC server of the machine %s: %w", c.Runner.VM.Name, err)
	}
	go func() { // ends with the process at the latest
		_, _ = io.Copy(conn, stdin)
		_ = conn.CloseWrite() // the viewer has closed: QEMU ends the connection
	}()
	_, err = io.Copy(stdout, conn)
	return errors.Join(err, conn.Close())
}
