package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// What a configuration file says of USB redirection and of streaming is what
// QEMU has and was told. VM-Operator's controller writes streamingVideo and its
// runner reads streaming-video, which took no effect that way.
func TestSPICEChannels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spice     string
		redirects int
		streaming string
	}{
		{"usbRedirects: 0", 0, ""},
		{"streaming-video: \"off\"", runnerconfig.DefaultUSBRedirects, "off"},
		{"streamingVideo: all, usbRedirects: 1", 1, "all"},
		{"streaming-video: filter, usbRedirects: 14", 14, "filter"},
		{"streaming-video: \"off\", streamingVideo: filter", runnerconfig.DefaultUSBRedirects, "off"},
		{"streamingVideo: filter, usbRedirects: 3", 3, "filter"},
	} {
		t.Run(c.spice, func(t *testing.T) {
			d := testDirs(t)
			file := fmt.Sprintf("/Runner:\n  vm:\n    name: test\n    display:\n      spice: {socket: %q, %s}\n", filepath.Join(d.Runtime, qemucmd.SocketSPICE.FileName()), c.spice)
			parsed, _, err := runnerconfig.Parse([]byte(file))
			if err != nil {
				t.Fatal(err)
			}
			config := testConfig(t)
			config.Runner.VM.Display = parsed.Runner.VM.Display
			runnerconfig.Default(&config)
			r := start(t, config, d)
			s := r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
			tool, err := qmp.Dial(withPatience(t), s.Socket(qemucmd.SocketToolMonitor), qmp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			chardevs, err := qmp.Do(withPatience(t), tool, qmp.QueryChardev{})
			if err != nil {
				t.Fatal(err)
			}
			devices, err := qmp.Do(withPatience(t), tool, qmp.QOMList{Path: "/machine/peripheral"})
			if err != nil {
				t.Fatal(err)
			}
			if err := tool.Close(); err != nil {
				t.Error(err)
			}
			var want, channels, plugged []string
			for i := range c.redirects {
				want = append(want, fmt.Sprint(i))
			}
			for _, d := range chardevs {
				if n, ok := strings.CutPrefix(d.Label, "charredir"); ok {
					channels = append(channels, n)
					if d.Filename != "spicevmc" {
						t.Errorf("%s is %q", d.Label, d.Filename)
					}
				}
			}
			for _, d := range devices {
				if n, ok := strings.CutPrefix(d.Name, "redir"); ok && d.Type == "child<usb-redir>" {
					plugged = append(plugged, n)
				}
			}
			for _, got := range [][]string{channels, plugged} {
				slices.Sort(got)
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, channels); diff != "" {
				t.Errorf("channels, -want +got\n%s", diff)
			}
			if diff := cmp.Diff(want, plugged); diff != "" {
				t.Errorf("devices, -want +got\n%s", diff)
			}
			if got := streamingVideo(t, s.QEMUPID); got != c.streaming {
				t.Errorf("streaming-video %q, want %q", got, c.streaming)
			}
			r.cancel()
			r.wait(t)
		})
	}
}

// streamingVideo is the option of a running QEMU's SPICE server; "" if there is
// none. QEMU tells of it in no other way.
func streamingVideo(t *testing.T, pid int) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Split(string(data), "\x00")
	i := slices.Index(args, "-spice")
	if i < 0 {
		t.Fatalf("no SPICE server in %q", args)
	}
	for _, option := range strings.Split(args[i+1], ",") {
		if value, ok := strings.CutPrefix(option, "streaming-video="); ok {
			return value
		}
	}
	return ""
}
