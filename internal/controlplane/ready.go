package controlplane

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
)

// await polls a URL until it answers 200, while the named program runs.
func (c *ControlPlane) await(ctx context.Context, name, url string) error {
	c.mu.Lock()
	p := c.running[name]
	c.mu.Unlock()
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()

	// Another process may listen at the port that this one did not get, and never answer.
	asking, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		select {
		case <-p.Done():
			cancel()
		case <-asking.Done():
		}
	})

	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error // why it is not ready; that a request was cancelled does not explain it
	for {
		err := ask(asking, client, url)
		if err == nil {
			return nil
		}
		if last == nil || asking.Err() == nil {
			last = err
		}
		select {
		case <-p.Done():
			log := p.Tail()
			if strings.Contains(log, "address already in use") {
				err = errPortTaken
			} else {
				err = p.Ended()
			}
			return fmt.Errorf("%s ended before it was ready: %w; the end of its log:\n%s", name, err, log)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w): %w; the end of its log:\n%s", name, last, ctx.Err(), p.Tail())
		case <-tick.C:
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<12))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", url, resp.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("free port: %w", err)
		}
		defer func() { _ = l.Close() }() // all at the end, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// keepPort reserves a port of the loopback interface by binding it, so that the kernel does not
// assign it as a free port. It is nil if that fails.
func keepPort(port int) *os.File {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "port")
	// Connections of the server that has ended may linger.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		_ = f.Close()
		return nil
	}
	return f
}
