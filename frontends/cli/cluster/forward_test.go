package cluster

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// kubelet answers the requests for port forwarding of API servers that know SPDY
// alone: each connection is told the path and the port, and ended.
func kubelet(w http.ResponseWriter, r *http.Request) { forwards(w, r, "") }

// forwards is kubelet, which may say of each connection what is wrong with it.
func forwards(w http.ResponseWriter, r *http.Request, wrong string) {
	if r.Header.Get("Upgrade") == "websocket" {
		http.Error(w, "unknown protocol", http.StatusBadRequest)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	for {
		select {
		case <-conn.CloseChan():
			return
		case s := <-streams:
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				_, _ = io.WriteString(s, wrong)
			} else {
				_, _ = io.WriteString(s, r.URL.Path+" "+s.Headers().Get(corev1.PortHeader))
			}
			_ = s.Close()
		}
	}
}

func TestForward(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(kubelet))
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL}, "lab", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var problems strings.Builder
	f, err := c.Forward(ctx, "lab", "web", 0, 5901, &problems)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(f.Port))
	for range 2 {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(conn)
		_ = conn.Close()
		if want := "/api/v1/namespaces/lab/pods/web/portforward 5901"; string(said) != want || err != nil {
			t.Errorf("%q, %v, want %q", said, err, want)
		}
	}
	cancel()
	if err := f.Wait(); err != nil {
		t.Errorf("the end that was asked for: %v", err)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		t.Error("it listens after its end")
	}
	if problems.Len() > 0 {
		t.Error(problems.String())
	}
}

func TestForwardIsRefused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL}, "lab", nil)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := c.Forward(t.Context(), "lab", "web", 0, 5901, io.Discard); err == nil || !strings.Contains(err.Error(), "forward port 5901 of pod lab/web: ") {
		t.Errorf("%v, %v", f, err)
	}
}

// What the other end says of a connection that it cannot lead on is told to who forwards,
// and not written to the standard error beside what is shown there.
func TestForwardTellsOfConnections(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { forwards(w, r, "nobody listens there") }))
	defer server.Close()
	var mu sync.Mutex
	var logged, told strings.Builder
	klog.LogToStderr(false)
	klog.SetOutput(guarded{&mu, &logged})
	t.Cleanup(func() { klog.SetOutput(io.Discard); klog.LogToStderr(true) })
	c, err := New(&rest.Config{Host: server.URL}, "lab", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f, err := c.Forward(ctx, "lab", "web", 0, 5901, guarded{&mu, &told})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.Port)))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(conn)
	_ = conn.Close()
	if err := f.Wait(); err == nil { // it ends with the first such connection
		t.Error("nothing is told of its end")
	}
	klog.Flush()
	mu.Lock()
	defer mu.Unlock()
	if got := told.String(); !strings.Contains(got, "nobody listens there") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
	if logged.Len() > 0 {
		t.Errorf("it is logged, too: %s", &logged)
	}
}

// guarded is written to by several at a time.
type guarded struct {
	mu *sync.Mutex
	to io.Writer
}

func (g guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.to.Write(p)
}
