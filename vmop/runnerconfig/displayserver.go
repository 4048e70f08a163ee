package runnerconfig

import (
	"github.com/vmop/sdk/internal/jsonwriter"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// displayServer is what the part of a configuration that is about one protocol tells
// those who ask about all of them. What is known without a configuration is in the
// table of package limits.
type displayServer interface {
	write(w *jsonwriter.Writer)
	protocol() qemucmd.DisplayProtocol
	// port is the field of a port, by its place in the table: first the one that a socket
	// replaces.
	port(i int) **int
	// place is what it listens on besides.
	place() (address, socket *string)
	// open is the field that admits any client where there is no password; nil if the
	// protocol has none.
	open() *bool
	// setDefaults sets those that only this protocol has, and validate checks them.
	setDefaults()
	validate(v *validator)
	// machine gives a machine the server, which listens at a place.
	machine(d *qemucmd.Display, at listening, password bool)
}

// listening is where a server listens: at a port, or on a socket.
type listening struct {
	address, socket string
	port            int
}

// displaySlot is the place of one protocol's server in a display.
type displaySlot interface {
	// server is the one that is there, if any is.
	server() (displayServer, bool)
	// protocol is the name of it.
	protocol() string
	// add puts a server there that has nothing configured.
	add() displayServer
	// unshare puts a copy in place of the server, if there is one.
	unshare()
}

// serverOf is a pointer to the type of one protocol.
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
