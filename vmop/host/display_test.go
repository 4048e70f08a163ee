package host

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

func TestDisplayNotes(t *testing.T) {
	port := func(n int) *int { return &n }
	for _, c := range []struct {
		display *runnerconfig.Display
		want    []string // the fields
	}{
		{nil, nil},
		{&runnerconfig.Display{SPICE: &runnerconfig.SPICE{Socket: "/run/spice.sock"}, VNC: &runnerconfig.VNC{Socket: "/run/vnc.sock"}}, nil},
		{&runnerconfig.Display{SPICE: &runnerconfig.SPICE{Port: port(5900), Address: "127.0.0.1"}}, []string{"spec.vm.display.spice.port"}},
		{&runnerconfig.Display{VNC: &runnerconfig.VNC{Port: port(5901), Websocket: port(5902)}}, []string{"spec.vm.display.vnc.port", "spec.vm.display.vnc.websocket"}},
		{&runnerconfig.Display{VNC: &runnerconfig.VNC{Socket: "/run/vnc.sock", Websocket: port(5902)}}, []string{"spec.vm.display.vnc.websocket"}},
	} {
		config := runnerconfig.Config{}
		config.Runner.VM.Display = c.display
		var got []string
		for _, note := range displayNotes(&config) {
			field, _, _ := strings.Cut(note, ":")
			got = append(got, field)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A directory is too long exactly if a machine's shortest runtime directory is.
func TestTooLong(t *testing.T) {
	for n := range 200 {
		base := "/" + strings.Repeat("x", n)
		fits := len(runtimeDir(base, strings.Repeat("n", 63), strings.Repeat("m", 63))) <= maxSocketDir()
		problem := tooLong(base, func(string) string { return "/x" })
		if fits != (problem == "") || strings.Contains(problem, "\n") {
			t.Errorf("%d bytes: fits %v, %q", n+1, fits, problem)
		}
	}
}
