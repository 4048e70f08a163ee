package vmopagent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/vmopagent"
)

// Each story is a conversation: "< LINE" comes from the agent, "> LINE" must be
// said next, "= USER REASON [FAILURE]" is the state, the rest are the runner's
// news.
func TestStories(t *testing.T) {
	for name, story := range map[string]string{
		"login and logout": `
			want alice
			= "" VmopAgentDisconnected
			< 220 hello
			> login alice
			= "" Processing
			< 102 stopping the desktop
			< 201 done
			= alice LoggedIn
			want
			> logout
			= alice NotRequested
			< 202 done
			= "" NotRequested`,
		"a configuration update with the same user says nothing": `
			want alice
			< 220
			> login alice
			want alice
			< 201
			want alice
			= alice LoggedIn`,
		"the first agent is told that nobody is wanted, its successor is not told again": `
			< 220
			> logout
			< 202
			< 220
			< 240 bye
			< 220
			= "" NotRequested`,
		"an agent that starts again is asked again, and nobody counts as logged in": `
			want alice
			< 220
			> login alice
			< 201
			< 220
			> login alice
			= "" Processing
			< 201 already
			= alice LoggedIn`,
		"the agent leaves": `
			want alice
			< 220
			> login alice
			< 201
			< 240 leaving
			= "" VmopAgentDisconnected
			< 201 too late`,
		"the port closes": `
			want alice
			< 220
			> login alice
			< 201
			wait 1h
			closed
			= "" VmopAgentDisconnected
			opened
			= "" VmopAgentDisconnected
			< 220
			> login alice`,
		"the greeting overtakes the news of the port": `
			want alice
			< 220
			> login alice
			closed
			opened
			> login alice
			< 201
			= alice LoggedIn`,
		"nothing is asked for that answers nothing": `
			< 451 unsolicited
			< 220
			> logout
			< 202
			< 451 unsolicited
			< 504 unsolicited
			< 201 unsolicited
			= "" NotRequested`,
		"a desired user who changes while a command is under way waits": `
			want alice
			< 220
			> login alice
			want bob
			want carol
			< 201
			> login carol
			= alice Processing
			< 201
			= carol LoggedIn`,
		"a refusal is not repeated": `
			want root
			< 220
			> login root
			< 504 not root
			= "" Processing Refused
			wait 24h
			want alice
			> login alice
			= "" Processing`,
		"a failure is repeated, later and later, and then given up": `
			want alice
			< 220
			> login alice
			< 451 broken
			= "" Processing Failed
			wait 9s
			wait 1s
			> login alice
			< 451 broken
			wait 19s
			wait 1s
			> login alice
			< 451 broken
			wait 24h
			= "" Processing Failed`,
		"no answer, and a late one": `
			want alice
			< 220
			> login alice
			wait 60s
			= "" Processing NoAnswer
			< 201
			= alice LoggedIn`,
		"a late answer is not the answer to another login": `
			want alice
			< 220
			> login alice
			wait 60s
			want bob
			> login bob
			< 201 alice
			= "" Processing
			< 201 bob
			= bob LoggedIn`,
		"a name that is two lines is not sent, and its predecessor is logged out": `
			want alice
			< 220
			> login alice
			< 201
			want bob\nlogin root
			> logout
			< 202
			= "" Processing InvalidUser`,
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1700000000, 0)
			m := vmopagent.NewMachine(vmopagent.Config{Timeout: time.Minute, Retry: 10 * time.Second, Attempts: 3}, "")
			var said []string
			for n, line := range strings.Split(strings.TrimSpace(story), "\n") {
				verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				if verb != ">" && len(said) > 0 {
					t.Fatalf("line %d, %s: before it, the machine says %q", n+1, line, said)
				}
				switch verb {
				case "want":
					said = m.Want(now, strings.ReplaceAll(rest, `\n`, "\n"))
				case "<":
					said = m.Line(now, rest)
				case "closed":
					m.Closed(now)
				case "opened":
					said = m.Opened(now)
				case "wait":
					d, err := time.ParseDuration(rest)
					if err != nil {
						t.Fatal(err)
					}
					now = now.Add(d)
					said = m.Tick(now)
				case ">":
					if !slices.Equal(said, []string{rest}) {
						t.Fatalf("line %d: the machine says %q, want %q", n+1, said, rest)
					}
					said = nil
				case "=":
					s := m.State()
					got := s.LoggedInUser
					if got == "" {
						got = `""`
					}
					if got = strings.TrimSpace(got + " " + string(s.Reason) + " " + string(s.Failure)); got != rest {
						t.Fatalf("line %d: the state is %s, want %s", n+1, got, rest)
					}
				default:
					t.Fatalf("line %d: %s", n+1, line)
				}
			}
			if len(said) > 0 {
				t.Fatalf("at last, the machine says %q", said)
			}
		})
	}
}
