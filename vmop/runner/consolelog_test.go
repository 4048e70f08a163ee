package runner

import (
	"testing"
	"time"

	"github.com/vmop/sdk/internal/tinyguest"
)

func TestPlain(t *testing.T) {
	for line, want := range map[string]string{
		"plain text\r":                       "plain text",
		"\x1b[2J\x1b[01;01H\x1b[=3hfirmware": "firmware",
		"\x1b[0;32m  OK  \x1b[0m done":       "  OK   done",
		"  1%\r 50%\r100%\r\r":               "100%",
		"\r\x1b[Kvmop-guest: cpu 1 online":   "vmop-guest: cpu 1 online",
		"\x1b[2J \r":                         "",
		"an unfinished \x1b":                 "an unfinished \x1b",
	} {
		if got := plain(line); got != want {
			t.Errorf("plain(%q) = %q, want %q", line, got, want)
		}
	}
}

// What the guest prints is reported if that is wanted, and to the clients of the
// console in any case.
func TestConsoleLog(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{true, false} {
		d := testDirs(t)
		r := start(t, testConfig(t), d, func(o *Options) { o.ConsoleLog = wanted })
		console := r.console(t)
		command(t, console, "echo one two")
		for end := time.Now().Add(patience); wanted && !r.log.said("one two"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("messages %q", r.log.messages)
			}
		}
		r.Stop()
		r.wait(t)
		if r.log.said(tinyguest.Ready) != wanted {
			t.Errorf("the console is logged: %t; messages %q", !wanted, r.log.messages)
		}
		nothingLeft(t, d)
	}
}
