package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// QEMU's monitor accepts a second client and greets it when the first has gone.
func TestInspectOfABusyMonitor(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "qmp.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	code, stdout, stderr := call(t, "inspect", "--socket", socket)
	if code != exitError || stdout != "" || !strings.Contains(stderr, "it serves one client at a time") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stderr, "waiting for QEMU's monitor (1s)") {
		t.Errorf("no progress was shown:\n%s", stderr)
	}
}
