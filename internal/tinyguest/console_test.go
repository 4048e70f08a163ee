package tinyguest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
)

// script is the guest's side of a conversation: it says the first text, and for
// each line that it hears the text of that line.
func script(t *testing.T, first string, answers map[string]string) *tinyguest.Console {
	t.Helper()
	host, guest := net.Pipe()
	console := tinyguest.NewConsole(host)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer guest.Close()
		fmt.Fprint(guest, first)
		for lines := bufio.NewScanner(guest); lines.Scan(); {
			answer, ok := answers[lines.Text()]
			if !ok {
				return // the guest dies
			}
			for _, part := range strings.SplitAfter(answer, "") { // as slowly as a serial port
				fmt.Fprint(guest, part)
			}
		}
	}()
	t.Cleanup(func() {
		_ = console.Close() // net.Pipe's close cannot fail
		<-done
	})
	return console
}

func TestCommandReturnsTheAnswer(t *testing.T) {
	c := script(t, "booting\r\nvmop-guest: ready\r\nhint\r\n> ", map[string]string{
		"cpus":    "cpus\r\nonline 0\r\npossible 0-1\r\n> ",
		"nothing": "nothing\r\n> ",
		"torn":    "to\r\x1b[Kvmop-guest: cpu 1 online\r\n> torn\r\na > b\r\n> ",
		"wrong":   "wrong\r\nerror: not so\r\n> ",
	})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ command, want string }{
		{"cpus", "online 0\npossible 0-1"}, {"nothing", ""}, {"torn", "a > b"}, {"nothing", ""},
	} {
		if got, err := c.Command(t.Context(), x.command); err != nil || got != x.want {
			t.Errorf("%s: got %q, %v; want %q", x.command, got, err, x.want)
		}
	}
	got, err := c.Command(t.Context(), "wrong")
	if !errors.Is(err, tinyguest.ErrCommand) || got != "error: not so" {
		t.Errorf("wrong: got %q, %v", got, err)
	}
	if _, err := c.Command(t.Context(), "two\nlines"); err == nil {
		t.Error("two lines were taken for a command")
	}
	if _, err := c.Command(t.Context(), "die"); err == nil || !strings.Contains(err.Error(), "error: not so") {
		t.Errorf("the death of the guest gave %v", err)
	}
}

func TestExpectConsumesWhatItReturns(t *testing.T) {
	c := script(t, "one two one three", nil)
	for _, x := range []struct{ text, want string }{{"one", "one"}, {"one", " two one"}, {"three", " three"}} {
		if got, err := c.Expect(t.Context(), x.text); err != nil || got != x.want {
			t.Errorf("%s: got %q, %v; want %q", x.text, got, err, x.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Expect(ctx, "one"); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "one two one three") {
		t.Errorf("got %v", err)
	}
	if c.Transcript() != "one two one three" {
		t.Errorf("transcript is %q", c.Transcript())
	}
}
