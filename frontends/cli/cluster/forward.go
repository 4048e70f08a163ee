package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// Forwarding forwards a port of this host's loopback interface to one of a pod, until the context
// of [Client.Forward] ends.
type Forwarding struct {
	// Port is the port of 127.0.0.1.
	Port int

	done chan error
}

// Wait waits for the end and returns its reason, nil if the context has ended. It must be called
// once.
func (f *Forwarding) Wait() error { return <-f.done }

// Forward listens on a port of 127.0.0.1, a free one if it is 0, and forwards each connection to a
// port of a machine's pod, including one on the pod's loopback interface, as kubectl port-forward
// does. Errors of single connections are written to problems. The caller must call Wait.
func (c *Client) Forward(ctx context.Context, namespace, name string, local, port int, problems io.Writer) (*Forwarding, error) {
	wrap := func(err error) error {
		return fmt.Errorf("forward port %d of pod %s/%s: %w", port, namespace, name, err)
	}
	at := c.rest.Post().Namespace(namespace).Resource("pods").Name(name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, wrap(err)
	}
	// Recent API servers and proxies accept WebSockets, older ones only SPDY.
	sockets, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, c.config)
	if err != nil {
		return nil, wrap(err)
	}
	dialer := portforward.NewFallbackDialerForStreaming(sockets, spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })
	ready := make(chan struct{})
	// Its logger would write to the standard error, over the command's output.
	logged := klog.NewContext(ctx, logr.New(&troubles{to: problems}))
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(logged, dialer, []string{"127.0.0.1"},
		[]string{strconv.Itoa(local) + ":" + strconv.Itoa(port)}, ready, io.Discard, problems)
	if err != nil {
		return nil, wrap(err)
	}
	f := &Forwarding{done: make(chan error, 1)}
	go func() {
		err := forwarder.ForwardPorts()
		if ctx.Err() != nil {
			err = nil // as requested
		}
		if err != nil {
			err = wrap(err)
		}
		f.done <- err
	}()
	select {
	case err := <-f.done:
		if err == nil {
			err = wrap(context.Cause(ctx))
		}
		return nil, err
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err == nil && len(ports) != 1 {
		err = errors.New("no port is forwarded")
	}
	if err != nil {
		forwarder.Close()
		return nil, errors.Join(wrap(err), f.Wait())
	}
	f.Port = int(ports[0].Local)
	return f, nil
}

// troubles logs errors, one per line. Connections write to it concurrently.
type troubles struct {
	mu sync.Mutex
	to io.Writer
}

// Init implements [logr.LogSink].
func (t *troubles) Init(logr.RuntimeInfo) {}

// Enabled implements [logr.LogSink]: only errors are logged.
func (t *troubles) Enabled(int) bool { return false }

// Info implements [logr.LogSink].
func (t *troubles) Info(int, string, ...any) {}

// Error implements [logr.LogSink].
func (t *troubles) Error(err error, what string, _ ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.to, "%s: %v\n", what, err)
}

// WithValues implements [logr.LogSink].
func (t *troubles) WithValues(...any) logr.LogSink { return t }

// WithName implements [logr.LogSink].
func (t *troubles) WithName(string) logr.LogSink { return t }
