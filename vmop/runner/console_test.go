package runner

import (
	"net"
	"testing"
	"time"
)

// A viewer that has ended its input and reads nothing does not hold up the end of the machine.
func TestConsoleEndsBesideAViewerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	c, err := listenConsole(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.DialUnix("unix", nil, c.listener.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	viewers := func() map[*viewer]bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		all := map[*viewer]bool{}
		for v := range c.viewers {
			all[v] = true
		}
		return all
	}
	waitUntil := func(what string, is func() bool) {
		for deadline := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	waitUntil("the viewer is not taken", func() bool { return len(viewers()) == 1 })
	for v := range viewers() { // more than the socket and the backlog hold
		for len(v.out) < cap(v.out) {
			c.publish(make([]byte, 64<<10))
		}
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	waitUntil("its end is not noticed", func() bool { return len(viewers()) == 0 })
	ended := make(chan error, 1)
	go func() { ended <- c.close() }() // it ends with the client, if not before
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * consoleFlush):
		t.Error("the console does not end")
	}
}
