package agent_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/examples/vmop-agent/agent"
)

// Whatever the host says: every line has exactly one answer that is not progress,
// in order, actions see valid users only, and what was confirmed is so.
func TestEveryLineIsAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The plain TB has no Deadline method, which must not be called in a bubble.
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			host, guest := net.Pipe()
			defer host.Close()
			var user string // who is logged in, in truth
			var broken bool
			act := func(_ context.Context, u string) error {
				if u != "" && agent.CheckUser(u) != nil {
					t.Errorf("logs in %q", u)
				}
				if broken {
					return errors.New("broken\n201 and malicious")
				}
				user = u
				return nil
			}
			ended := make(chan error, 1)
			go func() { ended <- agent.Serve(context.Background(), guest, act, act) }()
			lines := bufio.NewReader(host)
			answer := func() string {
				for {
					line, err := lines.ReadString('\n')
					if err != nil || len(line) < 5 || line[3] != ' ' {
						t.Fatalf("%q, %v", line, err)
					}
					if line[0] != '1' {
						return line[:3]
					}
				}
			}
			if code := answer(); code != "220" {
				t.Fatal(code)
			}
			for range rapid.IntRange(0, 20).Draw(t, "lines") {
				broken = rapid.Bool().Draw(t, "broken")
				line := rapid.OneOf(
					rapid.SampledFrom([]string{"logout", "login alice", "login bob", "login root", strings.Repeat("login ", 1000)}),
					rapid.Map(rapid.String(), func(s string) string { return "login " + s }),
					rapid.String(),
				).Filter(func(s string) bool { return !strings.Contains(s, "\n") }).Draw(t, "line")
				if _, err := io.WriteString(host, line+"\n"); err != nil {
					t.Fatal(err)
				}
				switch code := answer(); code {
				case "201":
					if want := strings.TrimRight(strings.TrimPrefix(line, "login "), "\r"); user != want {
						t.Fatalf("%q: confirmed, but %q is logged in", line, user)
					}
				case "202":
					if user != "" {
						t.Fatalf("%q: confirmed, but %q is logged in", line, user)
					}
				case "451", "500", "501", "504":
				default:
					t.Fatal(code)
				}
			}
			_ = host.Close()
			if err := <-ended; !errors.Is(err, agent.ErrHostGone) {
				t.Fatal(err)
			}
		})
	})
}

func TestTheEndInterruptsAnAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, guest := net.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		slow := func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		ended := make(chan error, 1)
		go func() { ended <- agent.Serve(ctx, guest, slow, slow) }()
		go func() { _, _ = io.WriteString(host, "logout\n") }()
		lines := bufio.NewReader(host)
		for _, want := range []string{"220", "102", "240"} {
			if line, err := lines.ReadString('\n'); err != nil || line[:3] != want {
				t.Fatalf("%q, %v, want %s", line, err, want)
			}
			if want == "102" {
				cancel()
			}
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}

func TestCommand(t *testing.T) {
	var log strings.Builder
	if err := agent.Command("/bin/echo", time.Minute, &log)(t.Context(), "$(a) b"); err != nil || log.String() != "$(a) b\n" {
		t.Errorf("%q, %v", &log, err)
	}
	if err := agent.Command("/bin/false", time.Minute, io.Discard)(t.Context(), ""); err == nil {
		t.Error("a failure is taken for success")
	}
	if err := agent.Command("/bin/sleep", time.Millisecond, io.Discard)(t.Context(), "1000"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := agent.FindPort("none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func ExampleServe() {
	host, guest := net.Pipe()
	go func() { _ = agent.Serve(context.Background(), guest, agent.Nothing, agent.Nothing) }()
	go func() { fmt.Fprint(host, "login alice\nlogin root\nlogout\n") }()
	lines := bufio.NewScanner(host)
	for range 6 {
		lines.Scan()
		fmt.Println(lines.Text())
	}
	// Output:
	// 220 vmop-agent is ready
	// 102 logging in alice
	// 201 alice is logged in
	// 504 root: must not be logged in
	// 102 logging out
	// 202 nobody is logged in
}
