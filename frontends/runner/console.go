package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// detachKey ends the view of a console, as with telnet: Ctrl-].
const detachKey = 0x1d

// viewConsole connects the streams to the serial console of the machine that another vmop-runner
// runs with the same configuration, until the machine ends or the user detaches.
func viewConsole(config string, stdin *os.File, stdout io.Writer) error {
	_, c, _, err := readConfig(config)
	if err != nil {
		return err
	}
	dirs, err := directories(&c)
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", filepath.Join(dirs.Runtime, qemucmd.SocketConsole.FileName()))
	if err != nil {
		return fmt.Errorf("the machine %s does not run here: %w", c.Runner.VM.Name, err)
	}
	keys := false
	if fd := int(stdin.Fd()); term.IsTerminal(fd) {
		old, err := term.MakeRaw(fd)
		if err != nil {
			return errors.Join(fmt.Errorf("set up the terminal: %w", err), conn.Close())
		}
		defer func() {
			// A guest's output can make terminals answer as if the user typed: the shell must not
			// get that.
			_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
			_ = term.Restore(fd, old)
		}()
		keys = true
	}
	go typeInto(conn, stdin, keys) // ends with the process at the latest
	_, err = io.Copy(stdout, conn)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	return errors.Join(err, ignoreClosed(conn.Close()))
}

// typeInto passes on what is typed. The end of the input does not end the view, so that answers are
// seen; the detach key does.
func typeInto(conn net.Conn, stdin io.Reader, keys bool) {
	buf := make([]byte, 1024)
	for {
		n, err := stdin.Read(buf)
		typed := buf[:n]
		i := -1
		if keys {
			i = bytes.IndexByte(typed, detachKey)
		}
		if i >= 0 {
			typed = typed[:i]
		}
		_, werr := conn.Write(typed)
		if i >= 0 {
			_ = conn.Close() // ends the view
			return
		}
		if err != nil || werr != nil {
			return
		}
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
