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

	locks       []*os.File
	certificate string
	made        madeDisks
	// inherited are the files that QEMU inherits after its monitor; they are closed once QEMU has
	// them, see handOver.
	inherited []*os.File
	opened    sync.Map

	// reporting serializes the calls of the reporter. It is not taken with mu held.
	reporting sync.Mutex

	mu       sync.Mutex // never held while the reporter is called
	queued   []report   // reports in their order
	state    State
	reported live.Reported
	locked   bool // all of locks are held
	requests int
	end      endFacts
	// ending is done once QEMU has announced its end.
	ending    context.Context
	announced context.CancelFunc
	desired   desired
	ticketing bool

	memory      memoryEvents // at QEMU's start
	lostShares  []string
	attachments attachments
	wake        chan struct{} // of the follower
	login       *login        // nil before QEMU runs, or without the VMOP agent's port
	timeout     broadcast
	progress    progress
}

// The stages of stopping, as indexes into Engine.stops.
const (
	stopAsk   = iota // ask the guest
	stopQuit         // do not wait for the guest
	stopKill         // do not wait for QEMU
	stopCount = iota
)

type endFacts struct {
	asked     bool
	shutdown  *qmp.ShutdownEvent
	panicked  bool
	panicTold time.Time
	// resetEnds reports whether QEMU was told to end at a reset, or may have been.
	resetEnds bool
	// revived: the machine went on after QEMU had announced its end, which a custom machine type
	// can cause.
	revived bool
}

type report struct {
	state   *State
	message Message
}

type madeDisks struct {
	// images did not exist before; ephemeral ones are for this run only.
	images, ephemeral []string
	// toGrow are the sizes of disks that QEMU has to enlarge, by name.
	toGrow map[string]int64
}

type attachments struct {
	e *Engine

	mu       sync.Mutex
	identity *tunnel.Identity // nil until it is needed
	ports    map[int]*forwarder
	images   map[int]*openedDisk
}

type forwarder struct {
	cancel context.CancelFunc
	done   chan struct{}
}

type login struct {
	e      *Engine
	socket string
	conn   net.Conn // nil while there is no connection

	// Both hold the last value until it is taken.
	users chan string
	ports chan bool
}
