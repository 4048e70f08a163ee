package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// shownProgress serves the progress of a disk that is being made: the pod has no access to the API
// to report it. Nothing else is served.
type shownProgress struct {
	mu  sync.Mutex
	now runnerconfig.ImportProgress
}

func (s *shownProgress) set(p runnerconfig.ImportProgress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = p
}

// serve answers on a port until the returned function is called. Without a port, or if it is taken,
// progress is not served, and the disk is made nonetheless.
func (s *shownProgress) serve(port int, stderr io.Writer) (end func()) {
	if port == 0 {
		return func() {}
	}
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		fmt.Fprintf(stderr, "vmop-runner: nobody is told how far it is: %v\n", err)
		return func() {}
	}
	server := &http.Server{
		Handler: s, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 4 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // errors are the clients'
	}
	server.SetKeepAlivesEnabled(false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(few(l)) // it ends with the listener
	}()
	return func() {
		_ = server.Close()
		<-done
	}
}

// ServeHTTP implements [http.Handler].
func (s *shownProgress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Path != runnerconfig.ImportProgressPath {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	data, err := json.Marshal(s.now)
	s.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}

// few limits concurrent connections, so that clients cannot exhaust the pod's memory.
func few(l net.Listener) net.Listener {
	return &fewListener{Listener: l, free: make(chan struct{}, 8), closed: make(chan struct{})}
}

type fewListener struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *fewListener) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &fewConn{Conn: c, l: l}, nil
}

func (l *fewListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type fewConn struct {
	net.Conn
	l    *fewListener
	once sync.Once
}

func (c *fewConn) Close() error {
	defer c.once.Do(func() { <-c.l.free })
	return c.Conn.Close()
}
