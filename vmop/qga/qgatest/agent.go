package qgatest

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Request is a command that the agent received.
type Request struct {
	Execute   string          `json:"execute"`
	Arguments json.RawMessage `json:"arguments"`
}

// Error is an error in the protocol's form, for handlers to return.
type Error struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

func (e *Error) Error() string { return e.Class + ": " + e.Desc }

// Handler answers a command with a value that is encoded, or with an error. ErrSilent means no
// answer.
type Handler func(Request) (any, error)

// ErrSilent is returned by the handler of a command that is not answered.
var ErrSilent = fmt.Errorf("no answer")

// Fault is a kind of wrong answer.
type Fault int

// The faults.
const (
	None      Fault = iota
	Drop            // no answer
	Hold            // the answer, and all after it, wait for Agent.Release: a slow agent answers in order
	Duplicate       // the answer comes twice, in one piece
	Garbage         // a line that is no JSON comes instead
	Half            // the answer breaks off in its middle
	Hangup          // the connection ends instead
)

// Agent is a fake agent on one connection. Set its fields before Serve.
type Agent struct {
	// Handlers answer the commands of these names. guest-sync, guest-sync-delimited and guest-ping
	// have a built-in handler.
	Handlers map[string]Handler
	// Fault, if not nil, chooses how to answer. It is called for each request, including those that
	// synchronize.
	Fault func(Request) Fault

	mu       sync.Mutex
	out      chan struct{} // a token: there is something in queue, or it is over
	queue    [][]byte
	held     [][]byte
	over     bool
	requests []Request
}

// Serve answers requests until the connection ends, and closes it.
func (a *Agent) Serve(conn io.ReadWriteCloser) {
	a.mu.Lock()
	a.out = make(chan struct{}, 1)
	a.out <- struct{}{} // for what was sent before
	a.over = false
	a.mu.Unlock()
	written := make(chan struct{})
	// Writing is separate, like a socket's buffer: a client that does not read does not keep the
	// agent from reading.
	go func() {
		defer close(written)
		a.write(conn)
	}()
	a.read(conn)
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.wake()
	_ = conn.Close()
	<-written
}

// Requests returns what the agent received, in order.
func (a *Agent) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Request(nil), a.requests...)
}

// Send writes unsolicited bytes to the client.
func (a *Agent) Send(b []byte) {
	a.mu.Lock()
	a.queue = append(a.queue, b)
	a.mu.Unlock()
	a.wake()
}

// Release sends the held answers.
func (a *Agent) Release() {
	a.mu.Lock()
	a.queue = append(a.queue, a.held...)
	a.held = nil
	a.mu.Unlock()
	a.wake()
}

func (a *Agent) wake() {
	a.mu.Lock()
	out := a.out
	a.mu.Unlock()
	select {
	case out <- struct{}{}:
	default:
	}
}

func (a *Agent) write(conn io.Writer) {
	for range a.out {
		a.mu.Lock()
		queue, over := a.queue, a.over
		a.queue = nil
		a.mu.Unlock()
		if over {
			return
		}
		for _, b := range queue {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}
}

func (a *Agent) read(conn io.Reader) {
	var p parser
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		for _, b := range buf[:n] {
			text, broken := p.next(b)
			if broken {
				a.reply([]byte(`{"error": {"class": "GenericError", "desc": "JSON parse error, stray input"}}`+"\n"), false)
			}
			if text != nil && !a.handle(text) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (a *Agent) handle(text []byte) bool {
	var req Request
	if err := json.Unmarshal(text, &req); err != nil {
		a.reply(encode(false, nil, &Error{"GenericError", "JSON parse error"}), false)
		return true
	}
	a.mu.Lock()
	a.requests = append(a.requests, req)
	a.mu.Unlock()
	fault := None
	if a.Fault != nil {
		fault = a.Fault(req)
	}
	if fault == Hangup {
		return false
	}
	value, err := a.answer(req)
	if err == ErrSilent {
		return true
	}
	answer := encode(req.Execute == "guest-sync-delimited", value, err)
	switch fault {
	case Drop:
	case Duplicate:
		a.reply(append(answer, answer...), false)
	case Garbage:
		a.reply([]byte("}{ this is not JSON\n"), false)
	case Half:
		a.reply(answer[:len(answer)/2], false)
	default:
		a.reply(answer, fault == Hold)
	}
	return true
}

func (a *Agent) reply(answer []byte, hold bool) {
	a.mu.Lock()
	hold = hold || len(a.held) > 0
	if hold {
		a.held = append(a.held, answer)
	}
	a.mu.Unlock()
	if !hold {
		a.Send(answer)
	}
}

func (a *Agent) answer(req Request) (any, error) {
	if h := a.Handlers[req.Execute]; h != nil {
		return h(req)
	}
	switch req.Execute {
	case "guest-ping":
		return struct{}{}, nil
	case "guest-sync", "guest-sync-delimited":
		var args struct {
			ID int64 `json:"id"`
		}
		if err := json.Unmarshal(req.Arguments, &args); err != nil {
			return nil, &Error{"GenericError", err.Error()}
		}
		return args.ID, nil
	}
	return nil, &Error{"CommandNotFound", "The command " + req.Execute + " has not been found"}
}

func encode(delimited bool, value any, err error) []byte {
	reply := map[string]any{"return": value}
	if err != nil {
		e, ok := err.(*Error)
		if !ok {
			e = &Error{"GenericError", err.Error()}
		}
		reply = map[string]any{"error": e}
	}
	text, err := json.Marshal(reply)
	if err != nil {
		text = fmt.Appendf(nil, `{"error": {"class": "GenericError", "desc": %q}}`, err.Error())
	}
	if delimited && reply["error"] == nil {
		text = append([]byte{0xff}, text...)
	}
	return append(text, '\n')
}

type parser struct {
	text     []byte
	depth    int
	inString bool
	escaped  bool
}

// next consumes a byte and returns the request that it completes, if any; broken reports whether
// the byte invalidated the pending input.
func (p *parser) next(b byte) (text []byte, broken bool) {
	switch {
	case b == 0xff:
		*p = parser{}
		return nil, true
	case p.depth == 0 && b != '{':
		return nil, false // between requests
	}
	p.text = append(p.text, b)
	switch {
	case p.escaped:
		p.escaped = false
	case p.inString:
		p.escaped = b == '\\'
		p.inString = b != '"'
	case b == '"':
		p.inString = true
	case b == '{':
		p.depth++
	case b == '}':
		if p.depth--; p.depth == 0 {
			text = p.text
			*p = parser{}
		}
	}
	return text, false
}
