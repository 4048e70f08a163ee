package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/internal/rfb"
	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/spec"
)

// What there is of a display beside what the manifest wants.
func TestInspectShowsTheDisplays(t *testing.T) {
	both := &spec.Display{Spice: &spec.Spice{}, VNC: &spec.VNC{}}
	spice := Display{Protocol: "spice", Address: "/run/user/1000/vmop/lab/desk/spice.sock", Auth: "none"}
	vnc := Display{Protocol: "vnc", Address: "127.0.0.1:5901", Websocket: "127.0.0.1:5701", Auth: "vnc", Clients: 1}
	var out bytes.Buffer
	for _, c := range []struct {
		name   string
		actual []Display
		wanted *spec.Display
	}{
		{"both", []Display{spice, vnc}, both},
		{"VNC waits for a restart", []Display{spice}, both},
		{"VNC goes with a restart", []Display{spice, vnc}, &spec.Display{Spice: &spec.Spice{}}},
		{"stopped", nil, both},
		{"none", nil, nil},
	} {
		r := Report{Name: c.name, Status: host.StatusRunning, Displays: c.actual, Wanted: &Wanted{Displays: wantedDisplays(c.wanted)}}
		var one bytes.Buffer
		if err := r.WriteText(&one); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "== %s\n", c.name)
		for _, line := range bytes.SplitAfter(one.Bytes(), []byte("\n")) {
			if bytes.HasPrefix(line, []byte("PROPERTY")) || bytes.HasPrefix(line, []byte("Display")) {
				out.Write(line)
			}
		}
	}
	golden(t, "display.txt", out.String())
}

// What QEMU tells of its servers: addresses, authentication and clients.
func TestInspectAsksForTheDisplays(t *testing.T) {
	qemu := testbin.Find(t, testbin.QEMU)
	dir, err := os.MkdirTemp("", "vmop") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	vnc, spice := filepath.Join(dir, "vnc.sock"), filepath.Join(dir, "spice.sock")
	for _, c := range []struct {
		name string
		args []string
		want []Display
	}{
		{"none", nil, nil},
		{"ports", []string{"-vnc", "127.0.0.1:0,to=9999,websocket=on"}, []Display{
			{Protocol: "vnc", Address: "127.0.0.1:PORT", Websocket: "127.0.0.1:PORT", Auth: "none", Clients: 1},
		}},
		{"sockets", []string{"-vnc", "unix:" + vnc + ",password=on", "-spice", "unix=on,addr=" + spice}, []Display{
			{Protocol: "spice", Address: spice, Auth: "spice"}, {Protocol: "vnc", Address: vnc, Auth: "vnc"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			client := askedQEMU(ctx, t, qemu, filepath.Join(dir, "qmp "+c.name), c.args...)
			var got Report
			if err := got.Query(ctx, client); err != nil {
				t.Fatal(err)
			}
			if c.name == "ports" {
				viewer, _, err := rfb.Open(ctx, "tcp", got.Displays[0].Address, "")
				if err != nil {
					t.Fatal(err)
				}
				defer viewer.Close()
				got = Report{}
				if err := got.Query(ctx, client); err != nil {
					t.Fatal(err)
				}
			}
			port := regexp.MustCompile(`:\d+$`)
			for i := range got.Displays {
				d := &got.Displays[i]
				d.Address, d.Websocket = port.ReplaceAllString(d.Address, ":PORT"), port.ReplaceAllString(d.Websocket, ":PORT")
			}
			if diff := cmp.Diff(c.want, got.Displays); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// askedQEMU starts a QEMU without a guest for the time of a test.
func askedQEMU(ctx context.Context, t *testing.T, qemu, socket string, args ...string) *qmp.Client {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	monitor, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, qemu, append([]string{
		"-machine", "none", "-nodefaults", "-display", "none",
		"-chardev", "socket,id=monitor,fd=3,server=on,wait=off", "-mon", "chardev=monitor,mode=control",
	}, args...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &said, &said, []*os.File{monitor}
	if err := errors.Join(cmd.Start(), monitor.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("QEMU: %s", &said)
		}
	})
	client, err := qmp.Dial(ctx, socket, qmp.Options{})
	if err = errors.Join(err, l.Close()); err != nil { // nobody else listens: a QEMU that fails ends the connection
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
