package controlplane

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/vmop/sdk/internal/child"
)

// A wait whose end comes in the middle of a question says why the program is not
// ready, and not that the question was broken off.
func TestAwaitSaysTheLastAnswer(t *testing.T) {
	p, err := child.Start(child.Command{Name: "silent", Path: "/bin/sleep", Args: []string{"1000"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			http.Error(w, "etcd is still thinking", http.StatusServiceUnavailable)
			return
		}
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	c := &ControlPlane{config: &rest.Config{Host: server.URL}, running: map[string]*child.Process{"silent": p}}
	err = c.await(ctx, "silent", server.URL)
	if err == nil || !strings.Contains(err.Error(), "still thinking") {
		t.Error(err)
	}
}

// A port that is kept refuses connections and is nobody's, and is free afterwards.
func TestKeptPort(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().(*net.TCPAddr)
	client, err := net.Dial("tcp4", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept() // its end lingers
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(server.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	kept := keepPort(address.Port)
	if kept == nil {
		t.Fatal("the port is not kept")
	}
	if c, err := net.Dial("tcp4", address.String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, %v", c, err)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = net.Listen("tcp4", address.String()); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
