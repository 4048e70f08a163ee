package qmptest

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Handler decides what a command does. Handlers run one at a time, in the order of the commands;
// meanwhile the server reads nothing, like a QEMU that hangs. A handler may keep the call and
// answer it later, from any goroutine.
type Handler func(*Call)

// Options describe the monitor. The zero value has no command but qmp_capabilities.
type Options struct {
	// Version is the version in the greeting; zero means 7.2.0.
	Version [3]int
	// Capabilities are those offered, such as "oob".
	Capabilities []string
	// Handlers are the commands, by name. "qmp_capabilities" may be replaced; the built-in one
	// checks the request as QEMU does.
	Handlers map[string]Handler
	// Default handles all other commands. Nil refuses them as QEMU does.
	Default Handler
	// Silent leaves out the greeting, like a monitor that another client holds. The server then
	// only reads.
	Silent bool
	// BeforeReply is called after the request for capabilities was accepted and before its reply is
	// sent.
	BeforeReply func(*Server)
}

// Server is a fake monitor on one connection.
type Server struct {
	conn    net.Conn
	options Options
	done    chan struct{}

	writing sync.Mutex

	mu         sync.Mutex
	negotiated bool
	oob        bool
	received   []string
	files      []*os.File // received and not yet passed to a call
}

// Start serves conn with a fake monitor until the connection ends or Close is called.
func Start(conn net.Conn, o Options) *Server {
	s := &Server{conn: conn, options: o, done: make(chan struct{})}
	go s.serve()
	return s
}

// Pipe starts a fake monitor on one end of a pipe and returns the other, for a client. Both may be
// used in a testing/synctest bubble.
func Pipe(o Options) (net.Conn, *Server) {
	near, far := net.Pipe()
	return near, Start(far, o)
}

// Close closes the connection and waits for the server, and thus for a running handler, to end.
// Files that no handler has taken are closed. A handler must not call it, but may call Hangup.
func (s *Server) Close() {
	s.Hangup()
	<-s.done
}

// Hangup closes the connection without waiting.
func (s *Server) Hangup() { _ = s.conn.Close() }

// Done returns a channel that is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// Received returns the names of the commands received so far.
func (s *Server) Received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.received...)
}

// Emit sends an event; data may be nil. It reports whether it was sent in full.
func (s *Server) Emit(name string, data any) bool {
	now := time.Now()
	return s.send(event{
		Event:     name,
		Data:      data,
		Timestamp: timestamp{now.Unix(), int64(now.Nanosecond() / 1000)},
	})
}

// Write sends bytes as they are: half a line, garbage, several messages at once. It implements
// io.Writer.
func (s *Server) Write(b []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.conn.Write(b)
}

func (s *Server) send(message any) bool {
	b, err := json.Marshal(message)
	if err != nil {
		panic("qmptest: value cannot be encoded: " + err.Error()) // a mistake in the test
	}
	_, err = s.Write(append(b, '\r', '\n'))
	return err == nil
}

type event struct {
	Event     string    `json:"event"`
	Data      any       `json:"data,omitempty"`
	Timestamp timestamp `json:"timestamp"`
}

type timestamp struct {
	Seconds      int64 `json:"seconds"`
	Microseconds int64 `json:"microseconds"`
}

func (s *Server) serve() {
	defer close(s.done)
	defer s.closeFiles()
	defer s.Hangup()
	if !s.options.Silent {
		s.greet()
	}
	decoder := json.NewDecoder(source{s})
	for {
		var c Call
		if err := decoder.Decode(&c.request); err != nil {
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				s.send(refusal("GenericError", "JSON parse error", nil))
			}
			return
		}
		if s.options.Silent {
			continue
		}
		c.Server = s
		c.Files = s.takeFiles()
		s.dispatch(&c)
	}
}

func (s *Server) greet() {
	v := s.options.Version
	if v == [3]int{} {
		v = [3]int{7, 2, 0}
	}
	offered := s.options.Capabilities
	if offered == nil {
		offered = []string{}
	}
	s.send(map[string]any{"QMP": map[string]any{
		"version": map[string]any{
			"qemu":    map[string]int{"major": v[0], "minor": v[1], "micro": v[2]},
			"package": "qmptest",
		},
		"capabilities": offered,
	}})
}

// source reads from the connection and keeps the files that are received. On a Unix socket it reads
// byte by byte, as QEMU 7.2 does: a file comes with the first byte of its command, and a longer
// read may start before it.
type source struct{ s *Server }

func (r source) Read(b []byte) (int, error) {
	conn, ok := r.s.conn.(*net.UnixConn)
	if !ok {
		return r.s.conn.Read(b)
	}
	control := make([]byte, syscall.CmsgSpace(16*4))
	n, controlled, _, _, err := conn.ReadMsgUnix(b[:min(len(b), 1)], control)
	if controlled > 0 {
		r.s.keepFiles(control[:controlled])
	}
	if n <= 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

func (s *Server) keepFiles(control []byte) {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return
	}
	for _, m := range messages {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		s.mu.Lock()
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			s.files = append(s.files, os.NewFile(uintptr(fd), "received"))
		}
		s.mu.Unlock()
	}
}

func (s *Server) takeFiles() []*os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	files := s.files
	s.files = nil
	return files
}

func (s *Server) closeFiles() {
	for _, f := range s.takeFiles() {
		_ = f.Close()
	}
}
