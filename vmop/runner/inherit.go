package runner

import (
	"errors"
	"net"
	"os"
)

// monitorFD is the first descriptor that a child inherits beside the standard ones (os/exec's
// ExtraFiles).
const monitorFD = 3

// handOver lets QEMU inherit a file and returns its descriptor there. With nil, the descriptor
// stays closed, unless a file is put into its place later.
func (e *Engine) handOver(f *os.File) int {
	e.inherited = append(e.inherited, f)
	return monitorFD + len(e.inherited)
}

func (e *Engine) closeInherited() error {
	var errs []error
	for _, f := range e.inherited {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	e.inherited = nil
	return errors.Join(errs...)
}

func listenFile(path string) (*os.File, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	return f, errors.Join(err, l.Close())
}
