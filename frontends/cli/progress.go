package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vmop/sdk/internal/textout"
)

const (
	// progressDelay is how long something may take before progress is shown.
	progressDelay = time.Second
	// progressTerminal and progressLog are the update intervals: on a terminal within one line,
	// elsewhere by further lines.
	progressTerminal = time.Second
	progressLog      = 15 * time.Second
)

// progress shows on the standard error that something takes longer than a second. end ends it.
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

func (p *program) begin(what string) *progress {
	return beginProgress(p.stderr, isTerminal(p.stderr), what)
}

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

func (g *progress) set(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.what = what
}

// end stops; on a terminal the line is erased.
func (g *progress) end() {
	close(g.done)
	g.wg.Wait()
	if g.shown {
		fmt.Fprint(g.out, "\r\x1b[K")
	}
}
