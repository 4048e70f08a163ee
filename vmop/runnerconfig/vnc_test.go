package runnerconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

func TestVNC(t *testing.T) {
	for _, tt := range []struct {
		vnc      string
		password bool
		want     string // the server, or a part of the problem
	}{
		{"{}", true, "{Address: Port:5901 Socket: Websocket:0 Password:true}"},
		{"{}", false, "{Address:127.0.0.1 Port:5901 Socket: Websocket:0 Password:false}"},
		{"{socket: /v.sock}", false, "{Address: Port:0 Socket:/v.sock Websocket:0 Password:false}"},
		{"{socket: /v.sock, websocket: 5700}", false, "{Address:127.0.0.1 Port:0 Socket:/v.sock Websocket:5700 Password:false}"},
		{"{port: 5899}", true, "vm.display.vnc.port: 5899 must be from 5900 to 65535"},
		{"{port: 5910}", true, "vm.display.vnc.port: 5910 is already the port of vm.display.spice.port"},
		{"{port: 5950, websocket: 5950}", true, "vm.display.vnc.websocket: 5950 is already the port of vm.display.vnc.port"},
		{"{websocket: 65536}", true, "vm.display.vnc.websocket: 65536 must be from 1 to 65535"},
		{"{port: 5950, socket: /v.sock}", true, "vm.display.vnc: has a socket and a port"},
	} {
		got := server(t, tt.vnc, tt.password)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.vnc, got, tt.want)
		}
	}
}

func TestStreamingVideoIsChecked(t *testing.T) {
	c := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{Name: "vm"}}}
	for value, good := range map[string]bool{"": true, "off": true, "all": true, "filter": true, "on": false} {
		c.Runner.VM.Display = &runnerconfig.Display{SPICE: &runnerconfig.SPICE{StreamingVideo: value}}
		runnerconfig.Default(&c)
		err := runnerconfig.Validate(&c)
		if good != (err == nil) || err != nil && !strings.Contains(err.Error(), "vm.display.spice.streaming-video: ") {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func server(t *testing.T, vnc string, password bool) string {
	t.Helper()
	c, _, err := runnerconfig.Parse([]byte("/Runner:\n  vm:\n    name: vm\n    display:\n      spice: {port: 5910}\n      vnc: " + vnc + "\n"))
	if err != nil {
		return err.Error()
	}
	runnerconfig.Default(&c)
	if err := runnerconfig.Validate(&c); err != nil {
		return err.Error()
	}
	m, err := runnerconfig.Machine(&c, runnerconfig.Facts{RuntimeDir: "/run/vm", DataDir: "/data", DisplayPassword: password})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v", *m.Display.VNC)
}
