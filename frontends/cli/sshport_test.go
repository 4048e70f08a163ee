package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/host"
)

// TestSSHPortIsFreeWhenTheImageIsThere takes the ports that are chosen for the guest's SSH
// server while its image is fetched, which may take minutes.
func TestSSHPortIsFreeWhenTheImageIsThere(t *testing.T) {
	home := t.TempDir()
	t.Setenv("VMOP_DATA_DIR", home)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	h, err := host.Open(host.Options{DataDir: home})
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(home, "key.pub")
	if err := os.WriteFile(key, []byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHk ann@host\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var taken []int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		port, err := h.FreeSSHPort()
		if err != nil {
			t.Error(err)
		}
		// Whoever else has it by now has taken it, too.
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))); err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		taken = append(taken, port)
		http.ServeContent(w, r, "disk.raw", time.Time{}, strings.NewReader("\x00"+strings.Repeat("disk", 1<<10)))
	}))
	t.Cleanup(server.Close)
	var out, errs strings.Builder
	args := []string{"vmop-cli", "create", "--image", server.URL + "/disk.raw", "--name", "web", "--disk-size", "8Mi", "--ssh-key", key}
	if code := Main(t.Context(), args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	m, err := h.Machine("default", "web")
	if err != nil {
		t.Fatal(err)
	}
	o, err := m.Object()
	if err != nil {
		t.Fatal(err)
	}
	forwards := o.VirtualMachine.Spec.VM.Networks[0].User.HostForwards
	if len(taken) == 0 || len(forwards) != 1 || slices.Contains(taken, forwards[0].HostPort) {
		t.Errorf("%+v, though %v were taken meanwhile", forwards, taken)
	}
}
