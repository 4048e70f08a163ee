package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vmop/sdk/internal/textout"
)

const (
	// progressDelay is how long something may take before anything is said.
	progressDelay = time.Second
	// progressTerminal and progressLog are how often the time is told: on a
	// terminal in the same line, elsewhere in lines of their own.
	progressTerminal = time.Second
	progressLog      = 15 * time.Second
)

// progress tells on the standard error that something is going on for longer
// than a second. It is ended by end.
type progress struct {
	out      io.Writer
	terminal bool
	started  time.Time
	done     chan struct{}
	wg       sync.WaitGroup

	mu    sync.Mutex
	what  string
	shown bool
}

// begin starts to tell progress.
func (p *program) begin(what string) *progress {
	return beginProgress(p.stderr, isTerminal(p.stderr), what)
}

// beginProgress starts to tell progress; terminal says that out is one whose
// line may be written anew.
func beginProgress(out io.Writer, terminal bool, what string) *progress {
	g := &progress{out: out, what: what, terminal: terminal, started: time.Now(), done: make(chan struct{})}
	g.wg.Add(1)
	go g.run()
	return g
}

func (g *progress) run() {
	defer g.wg.Done()
	wait := time.NewTimer(progressDelay)
	defer wait.Stop()
	for {
		select {
		case <-g.done:
			return
		case <-wait.C:
		}
		g.show()
		if g.terminal {
			wait.Reset(progressTerminal)
		} else {
			wait.Reset(progressLog)
		}
	}
}

func (g *progress) show() {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := fmt.Sprintf("%s (%ds)", textout.Cell(g.what), int(time.Since(g.started).Seconds()))
	if !g.terminal {
		fmt.Fprintln(g.out, text)
		return
	}
	g.shown = true
	fmt.Fprintf(g.out, "\r\x1b[K%s", text) // return, erase to the end of the line
}

// set changes what is told.
func (g *progress) set(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.what = what
}

// end stops telling; on a terminal the line is erased.
func (g *progress) end() {
	close(g.done)
	g.wg.Wait()
	if g.shown {
		fmt.Fprint(g.out, "\r\x1b[K")
	}
}
