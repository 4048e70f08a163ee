package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/qga/qgatest"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// fakeMonitor is a monitor of a machine in a run state. What a command makes of
// it is told by effects; a command that is not there changes nothing.
func fakeMonitor(t *testing.T, state qmp.RunState, effects map[string]qmp.RunState) (*qmp.Client, *qmptest.Server) {
	t.Helper()
	near, s := qmptest.Pipe(qmptest.Options{Default: func(c *qmptest.Call) {
		if c.Name() == "query-status" {
			c.Return(qmp.Status{Running: state == qmp.RunStateRunning, Status: state})
			return
		}
		if next := effects[c.Name()]; next != "" {
			state = next
		}
		c.Return(nil)
	}})
	t.Cleanup(s.Close)
	client, err := qmp.NewClient(t.Context(), near, qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client, s
}

func TestPauseAndResume(t *testing.T) {
	for _, c := range []struct {
		name    string
		ask     func(context.Context, *qmp.Client) (string, error)
		state   qmp.RunState
		effects map[string]qmp.RunState
		sent    string
		became  string
		problem string
	}{
		{"a guest that runs is paused", pauseGuest, "running", map[string]qmp.RunState{"stop": "paused"}, "stop", "is paused", ""},
		{"a paused guest is left alone", pauseGuest, "paused", nil, "", "was paused already", ""},
		{"a newer QEMU pauses a suspended guest", pauseGuest, "suspended", map[string]qmp.RunState{"stop": "paused"}, "stop", "is paused", ""},
		{"an older QEMU does not", pauseGuest, "suspended", nil, "stop", "", "cannot be paused: QEMU's run state is suspended"},
		{"a guest that waits for its disk may go on by itself", pauseGuest, "io-error", nil, "stop", "", "cannot be paused: QEMU's run state is io-error"},
		{"a paused guest goes on", resumeGuest, "paused", map[string]qmp.RunState{"cont": "running"}, "cont", "goes on", ""},
		{"a guest that runs may be suspended to idle", resumeGuest, "running", nil, "send-key", "runs already; if it was suspended to idle, it wakes up", ""},
		{"a suspended guest is woken up", resumeGuest, "suspended", map[string]qmp.RunState{"system_wakeup": "running"}, "system_wakeup", "goes on", ""},
		{"a disk error comes again", resumeGuest, "io-error", nil, "cont", "", "does not go on: QEMU's run state is io-error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := fakeMonitor(t, c.state, c.effects)
			became, err := c.ask(t.Context(), client)
			if became != c.became || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%q, %v", became, err)
			}
			sent := ""
			for _, name := range server.Received() {
				if name != "qmp_capabilities" && name != "query-status" {
					sent += name
				}
			}
			if sent != c.sent {
				t.Errorf("sent %q, want %q", sent, c.sent)
			}
		})
	}
}

// A reset has happened when QEMU says so, and not when the guest reboots.
func TestResetWaitsForTheRightEvent(t *testing.T) {
	near, far := net.Pipe()
	var resumed bool
	s := qmptest.Start(far, qmptest.Options{Handlers: map[string]qmptest.Handler{
		"system_reset": func(c *qmptest.Call) {
			c.Server.Emit("RESET", map[string]any{"guest": true, "reason": "guest-reset"})
			c.Return(nil)
			c.Server.Emit("RESET", map[string]any{"guest": false, "reason": "host-qmp-system-reset"})
		},
		"cont": func(c *qmptest.Call) { resumed = true; c.Return(nil) },
	}})
	client, err := qmp.NewClient(t.Context(), near, qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	became, err := resetMachine(t.Context(), client)
	if became != "was reset" || err != nil {
		t.Errorf("%q, %v", became, err)
	}
	_ = client.Close()
	s.Close()
	if !resumed {
		t.Error("a machine that was paused was not resumed")
	}
}

func TestConnection(t *testing.T) {
	for _, c := range []struct {
		host string
		port int
		want string
	}{
		{"/run/user/1000/vmop/a/b/spice.sock", 0, "spice+unix:///run/user/1000/vmop/a/b/spice.sock"},
		{"*", 5900, "spice://127.0.0.1:5900"},
		{"0.0.0.0", 5900, "spice://127.0.0.1:5900"},
		{"::", 5901, "spice://[::1]:5901"},
		{"192.0.2.7", 5900, "spice://192.0.2.7:5900"},
	} {
		if got := connection(&qmp.SpiceInfo{Host: c.host, Port: c.port}); got.URI != c.want {
			t.Errorf("%s, %d: %s, want %s", c.host, c.port, got.URI, c.want)
		}
	}
}

// A picture that QEMU refuses to take leaves no file in QEMU.
func TestScreendumpCleansUp(t *testing.T) {
	near, far, err := qmptest.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	s := qmptest.Start(far, qmptest.Options{Handlers: map[string]qmptest.Handler{
		"add-fd":     func(c *qmptest.Call) { _ = c.Files[0].Close(); c.Return(qmp.AddedFD{FDSetID: 4, FD: 17}) },
		"screendump": func(c *qmptest.Call) { c.Fail("GenericError", "There is no console to take a screendump from") },
		"remove-fd": func(c *qmptest.Call) {
			var args qmp.RemoveFD
			if err := c.Arguments(&args); err != nil || args.FDSetID != 4 || *args.FD != 17 {
				t.Errorf("%+v, %v", args, err)
			}
			c.Return(nil)
		},
	}})
	defer s.Close()
	client, err := qmp.NewClient(t.Context(), near, qmp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if picture, err := host.Screenshot(t.Context(), client, host.ScreenshotOptions{}); picture != nil || err == nil || !strings.Contains(err.Error(), "no console") {
		t.Errorf("%d bytes, %v", len(picture), err)
	}
	if diff := cmp.Diff([]string{"qmp_capabilities", "add-fd", "screendump", "remove-fd"}, s.Received()); diff != "" {
		t.Error(diff)
	}
}

// Another output than the first is named to QEMU, and one that the machine lacks
// is told in the manifest's words before anything is done.
func TestScreendumpOfAnOutput(t *testing.T) {
	for _, c := range []struct {
		name    string
		output  int
		outputs any // of QEMU's device; nil if it is not there
		dumped  string
		problem string
	}{
		{"the first needs no name", 0, nil, `{"filename":"/dev/fdset/4","format":"png"}`, "QEMU wrote nothing"},
		{"the last", 1, 2, `{"filename":"/dev/fdset/4","device":"video0","head":1,"format":"png"}`, "QEMU wrote nothing"},
		{"one too many", 2, 2, "", "there is no output 2: the machine was started with 2, counted from 0"},
		{"another device", 1, nil, "", "output 1: the number of outputs is not known"},
		{"another property", 1, "two", "", "output 1: the number of outputs is not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			near, far, err := qmptest.SocketPair()
			if err != nil {
				t.Fatal(err)
			}
			var dumped string
			s := qmptest.Start(far, qmptest.Options{Handlers: map[string]qmptest.Handler{
				"qom-get": func(q *qmptest.Call) {
					if c.outputs == nil {
						q.Fail("DeviceNotFound", "Device '/machine/peripheral/video0' not found")
						return
					}
					q.Return(c.outputs)
				},
				"add-fd": func(q *qmptest.Call) { _ = q.Files[0].Close(); q.Return(qmp.AddedFD{FDSetID: 4, FD: 17}) },
				"screendump": func(q *qmptest.Call) {
					var args json.RawMessage
					if err := q.Arguments(&args); err != nil {
						t.Error(err)
					}
					dumped = string(args)
					q.Return(nil)
				},
				"remove-fd": func(q *qmptest.Call) { q.Return(nil) },
			}})
			client, err := qmp.NewClient(t.Context(), near, qmp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = host.Screenshot(t.Context(), client, host.ScreenshotOptions{Output: c.output})
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%v, want %q", err, c.problem)
			}
			_ = client.Close()
			s.Close()
			if dumped != c.dumped {
				t.Errorf("%s, want %s", dumped, c.dumped)
			}
		})
	}
}

// A file is put in place as a whole, and none is replaced unasked.
func TestCreateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.png")
	if err := createFile(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := createFile(path, []byte("second")); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	// The file is told by the name that it was asked for by, not a temporary one.
	missing := filepath.Join(dir, "no", "a.png")
	if err := createFile(missing, nil); !errors.Is(err, os.ErrNotExist) || err.Error() != "create "+missing+": no such file or directory" {
		t.Errorf("no directory: %v", err)
	}
	if data, err := os.ReadFile(path); string(data) != "first" {
		t.Errorf("%q, %v", data, err)
	}
	if err := atomicfile.Replace(path, []byte("third")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// fakeAgent is a guest agent with handlers.
func fakeAgent(t *testing.T, handlers map[string]qgatest.Handler) *qga.Client {
	t.Helper()
	near, far := net.Pipe()
	go (&qgatest.Agent{Handlers: handlers}).Serve(far)
	c := qga.New(near)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The output and the exit code of a guest's command become this program's.
func TestGuestExec(t *testing.T) {
	for _, c := range []struct {
		name   string
		status qga.ExecStatus
		code   int
		note   string
	}{
		{"success", qga.ExecStatus{}, 0, ""},
		{"failure", qga.ExecStatus{ExitCode: 42}, 42, ""},
		{"killed", qga.ExecStatus{Signal: 9}, 137, ""},
		{"no byte", qga.ExecStatus{ExitCode: 256}, 255, "The command's exit code is 256.\n"},
		{"negative", qga.ExecStatus{ExitCode: -1073741510}, 255, "The command's exit code is -1073741510.\n"},
		{"too much output", qga.ExecStatus{StdoutTruncated: true}, 0, "The guest agent has cut off the output.\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.status.Exited, c.status.Stdout, c.status.Stderr = true, []byte("out\x00\n"), []byte("err\n")
			var started json.RawMessage
			agent := fakeAgent(t, map[string]qgatest.Handler{
				"guest-exec": func(r qgatest.Request) (any, error) {
					started = r.Arguments
					return map[string]int{"pid": 7}, nil
				},
				"guest-exec-status": func(qgatest.Request) (any, error) { return c.status, nil },
			})
			var stdout, stderr bytes.Buffer
			p := &program{stdout: &stdout, stderr: &stderr}
			code := 0
			if err := p.guestExec(t.Context(), agent, []string{"ls", "-l", "a b"}, false); err != nil {
				code = p.failed(err)
			}
			if code != c.code || stdout.String() != "out\x00\n" || stderr.String() != "err\n"+c.note {
				t.Errorf("exit code %d, %q, %q", code, stdout.String(), stderr.String())
			}
			if got, want := string(started), `{"path":"ls","arg":["-l","a b"],"capture-output":true}`; got != want {
				t.Errorf("started %s, want %s", got, want)
			}
		})
	}
}

// What an agent may not tell is left out.
func TestGuestInfo(t *testing.T) {
	agent := fakeAgent(t, map[string]qgatest.Handler{
		"guest-info":          func(qgatest.Request) (any, error) { return map[string]any{"version": "7.2.22"}, nil },
		"guest-get-host-name": func(qgatest.Request) (any, error) { return map[string]any{"host-name": "web\x1b[2J"}, nil },
		"guest-get-osinfo": func(qgatest.Request) (any, error) {
			return nil, &qgatest.Error{Class: "CommandNotFound", Desc: "disabled"}
		},
		"guest-network-get-interfaces": func(qgatest.Request) (any, error) {
			return json.RawMessage(`[{"name":"eth0","hardware-address":"02:00:00:00:00:01","ip-addresses":[
				{"ip-address":"192.0.2.7","ip-address-type":"ipv4","prefix":24},{"ip-address":"2001:db8::7","ip-address-type":"ipv6","prefix":64}]},
				{"name":"sit0"}]`), nil
		},
	})
	var stdout bytes.Buffer
	p := &program{stdout: &stdout}
	if err := p.guestInfo(t.Context(), agent, formatTable); err != nil {
		t.Fatal(err)
	}
	want := `Guest agent:   7.2.22
Host name:     web\u001b[2J

INTERFACE   MAC                 ADDRESSES
eth0        02:00:00:00:00:01   192.0.2.7/24, 2001:db8::7/64
sit0        <none>              <none>
`
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	stdout.Reset()
	if err := p.guestInfo(t.Context(), agent, formatJSON); err != nil {
		t.Fatal(err)
	}
	var all output.Output
	if err := json.Unmarshal(stdout.Bytes(), &all); err != nil {
		t.Fatalf("%v\n%s", err, &stdout)
	}
	r, is := all.Items[0].(*output.GuestInfo)
	if !is || r.AgentVersion != "7.2.22" || r.OSInfo != nil || fmt.Sprint(r.Interfaces[0].IPAddresses) != "[192.0.2.7/24 2001:db8::7/64]" {
		t.Errorf("%+v", all.Items[0])
	}
}

// Without an agent, QEMU would keep what is sent to it until one comes.
func TestAgentReady(t *testing.T) {
	for _, c := range []struct {
		name     string
		state    qmp.RunState
		chardevs []qmp.ChardevInfo
		problem  string
	}{
		{"there is one", "running", []qmp.ChardevInfo{{Label: "monitor"}, {Label: qemucmd.GuestAgentChardev, FrontendOpen: true}}, ""},
		{"there is another one", "running", []qmp.ChardevInfo{{Label: "vdagentdev", FrontendOpen: true}, {Label: qemucmd.GuestAgentChardev}}, "no guest agent is connected"},
		{"there is no port", "running", nil, "no guest agent is connected"},
		{"the guest stands still", "paused", []qmp.ChardevInfo{{Label: qemucmd.GuestAgentChardev, FrontendOpen: true}}, "the guest does not execute: QEMU's run state is paused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			near, s := qmptest.Pipe(qmptest.Options{Handlers: map[string]qmptest.Handler{
				"query-status": func(q *qmptest.Call) {
					q.Return(qmp.Status{Running: c.state == qmp.RunStateRunning, Status: c.state})
				},
				"query-chardev": func(q *qmptest.Call) { q.Return(append([]qmp.ChardevInfo{}, c.chardevs...)) },
			}})
			defer s.Close()
			client, err := qmp.NewClient(t.Context(), near, qmp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			err = agentReady(t.Context(), client)
			if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Error(err)
			}
		})
	}
}

// A program that the guest does not have ends as in a shell.
func TestGuestExecOfAMissingProgram(t *testing.T) {
	agent := fakeAgent(t, map[string]qgatest.Handler{
		"guest-exec": func(qgatest.Request) (any, error) {
			return nil, &qgatest.Error{Class: "GenericError", Desc: "Failed to execute child process \u201cnope\u201d (No such file or directory)"}
		},
	})
	var stderr bytes.Buffer
	p := &program{stdout: io.Discard, stderr: &stderr}
	err := p.guestExec(t.Context(), agent, []string{"nope"}, false)
	if code := p.failed(err); code != exitNoProgram || !strings.Contains(stderr.String(), "nope") {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}
