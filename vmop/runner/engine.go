package runner

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runner/tunnel"
)

// Engine runs one machine, once.
//
// [Engine.Run] prepares the machine (prepare.go, disks.go), starts it (start.go), follows it
// (supervise.go, events.go, follow.go), ends it (powerdown.go), and reports its state (state.go,
// report.go).
type Engine struct {
	o Options

	// Each Stop cancels the next of these.
	stops [3]context.Context
	stop  [3]context.CancelFunc

	locks []*os.File
	// certificate is the digest of the display's certificate and key at the start.
	certificate string
	made        madeDisks
	// inherited are the files that QEMU inherits behind its monitor, which this
	// process closes once QEMU has them; see handOver.
	inherited []*os.File
	// opened has the paths of files by the names that QEMU has for their descriptors.
	opened sync.Map

	// reporting serializes the calls of the reporter. It is not taken with mu held.
	reporting sync.Mutex

	mu       sync.Mutex // never held while the reporter is called
	queued   []report   // what is to be reported, in its order
	state    State
	reported live.Reported
	locked   bool // all of locks are there
	requests int
	end      endFacts
	// ending is done once QEMU has announced that it ends.
	ending    context.Context
	announced context.CancelFunc
	// desired is the machine's desired state.
	desired desired
	// ticketing is whether the display was started with a password.
	ticketing bool

	memory memoryEvents // as they were before QEMU
	// lostShares are the tags of shares whose server has ended.
	lostShares []string
	// attachments holds the tunnels to disks that other pods export.
	attachments attachments
	wake        chan struct{} // of the follower
	login       *login        // nil before QEMU runs, or without the VMOP agent's port
	timeout     broadcast     // the power-down timeout was changed
	progress    progress
}

// The stages of stopping, as indexes into Engine.stops.
const (
	stopAsk   = iota // ask the guest
	stopQuit         // do not wait for the guest
	stopKill         // do not wait for QEMU
	stopCount = iota
)

// endFacts are what the end of a machine is judged by, as far as events and requests
// tell it.
type endFacts struct {
	asked    bool // this engine asked the machine to end
	shutdown *qmp.ShutdownEvent
	panicked bool
	// panicTold is when an event told of a panic.
	panicTold time.Time
	// resetEnds: QEMU was told to end at a reset, or may have been.
	resetEnds bool
	// revived: the machine went on after QEMU had told that it ends, as one can that
	// a custom machine type keeps.
	revived bool
}

// report is a call of the reporter: of a state, or else of a message.
type report struct {
	state   *State
	message Message
}

// madeDisks records which of the machine's disks an engine has made or has to change.
type madeDisks struct {
	// images are those that did not exist before, ephemeral those for this run alone.
	images, ephemeral []string
	// toGrow are the sizes of disks that QEMU has to enlarge, by their names.
	toGrow map[string]int64
}

// attachments holds the tunnels to the exporters of disks, and the images that the machine has
// itself.
type attachments struct {
	e *Engine

	mu       sync.Mutex
	identity *tunnel.Identity // nil until it is needed
	ports    map[int]*forwarder
	images   map[int]*openedDisk
}

// forwarder is what QEMU connects to for the disk at one port.
type forwarder struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// login has the wanted user logged in by the VMOP agent in the guest.
type login struct {
	e      *Engine
	socket string
	conn   net.Conn // nil while there is no connection

	// Both hold the last thing told, until it is taken.
	users chan string
	ports chan bool
}
