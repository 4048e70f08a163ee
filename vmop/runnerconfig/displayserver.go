package runnerconfig

import (
	"github.com/vmop/sdk/internal/jsonwriter"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// displayServer is the configuration of one protocol. Facts that do not depend on a configuration
// are in the table of package limits.
type displayServer interface {
	write(w *jsonwriter.Writer)
	protocol() qemucmd.DisplayProtocol
	// port returns the field of a port, by its index in the table: first the one that a socket
	// replaces.
	port(i int) **int
	place() (address, socket *string)
	// open returns the field that admits any client without a password; nil if the protocol has
	// none.
	open() *bool
	setDefaults()
	validate(v *validator)
	machine(d *qemucmd.Display, at listening, password bool)
}

type listening struct {
	address, socket string
	port            int
}

type displaySlot interface {
	server() (displayServer, bool)
	protocol() string
	add() displayServer
	unshare()
}

type serverOf[T any] interface {
	*T
	displayServer
}

type slot[T any, S serverOf[T]] struct{ at *S }

func slotAt[T any, S serverOf[T]](at *S) displaySlot { return slot[T, S]{at} }

func (s slot[T, S]) server() (displayServer, bool) { return *s.at, *s.at != nil }
func (s slot[T, S]) protocol() string              { return string((*s.at).protocol()) }

func (s slot[T, S]) add() displayServer {
	*s.at = new(T)
	return *s.at
}

func (s slot[T, S]) unshare() {
	if was := *s.at; was != nil {
		c := *was
		*s.at = &c
	}
}
