package controlplane

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
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
