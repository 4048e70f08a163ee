package qmptest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vmop/sdk/vmop/qmp/qmptest"
)

// talk sends the commands one by one and returns the replies, without regard to
// the order of members.
func talk(t *testing.T, conn net.Conn, commands ...string) []map[string]any {
	t.Helper()
	r := json.NewDecoder(conn)
	var replies []map[string]any
	receive := func() {
		var reply map[string]any
		if err := r.Decode(&reply); err != nil {
			t.Fatal(err)
		}
		replies = append(replies, reply)
	}
	receive()
	for _, c := range commands {
		if _, err := conn.Write([]byte(c)); err != nil {
			t.Fatal(err)
		}
		receive()
	}
	return replies
}

// The server refuses what QEMU 7.2 refuses, in the same words.
func TestServerSpeaksTheProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, s := qmptest.Pipe(qmptest.Options{Capabilities: []string{"oob"}, Handlers: map[string]qmptest.Handler{
			"echo": func(c *qmptest.Call) {
				var args map[string]any
				if err := c.Arguments(&args); err != nil {
					c.Fail("GenericError", err.Error())
					return
				}
				c.Return(args)
			},
		}})
		defer s.Close()
		got := talk(t, near,
			`{"execute":"echo","id":1}`,
			`{"execute":"qmp_capabilities","arguments":{"enable":["no"]},"id":2}`,
			`{"exec-oob":"echo","id":3}`,
			`{"execute":"qmp_capabilities","arguments":{"enable":["oob"]}}`,
			`{"execute":"qmp_capabilities","id":"a"}`,
			`{"execute":"echo","arguments":{"a":[1]},"id":{"any":null}}`,
			`{"exec-oob":"echo","id":4}`,
			`{"execute":"other","id":5}`,
			`{"id":6}`,
		)
		want := []string{
			`{"QMP":{"capabilities":["oob"],"version":{"package":"qmptest","qemu":{"major":7,"micro":0,"minor":2}}}}`,
			`{"error":{"class":"CommandNotFound","desc":"Expecting capabilities negotiation with 'qmp_capabilities'"},"id":1}`,
			`{"error":{"class":"GenericError","desc":"Capability no not available"},"id":2}`,
			`{"error":{"class":"GenericError","desc":"QMP input member 'exec-oob' is unexpected"},"id":3}`,
			`{"return":{}}`,
			`{"error":{"class":"CommandNotFound","desc":"Capabilities negotiation is already complete, command ignored"},"id":"a"}`,
			`{"id":{"any":null},"return":{"a":[1]}}`,
			`{"id":4,"return":{}}`,
			`{"error":{"class":"CommandNotFound","desc":"The command other has not been found"},"id":5}`,
			`{"error":{"class":"GenericError","desc":"QMP input lacks member 'execute'"},"id":6}`,
		}
		for i, reply := range got {
			if text, _ := json.Marshal(reply); string(text) != want[i] {
				t.Errorf("message %d is %s, want %s", i, text, want[i])
			}
		}
		if names := fmt.Sprint(s.Received()); names != "[echo qmp_capabilities echo qmp_capabilities qmp_capabilities echo echo other ]" {
			t.Errorf("received %s", names)
		}
	})
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, s := qmptest.Pipe(qmptest.Options{Silent: true})
		go func() {
			_, _ = s.Write([]byte("half a"))
			s.Hangup()
		}()
		text, err := bufio.NewReader(near).ReadString('\n')
		if text != "half a" || err == nil {
			t.Errorf("got %q and %v", text, err)
		}
		<-s.Done()
		s.Close()
		if s.Emit("LATE", nil) {
			t.Error("an event was sent after the end")
		}
	})
}

func TestGarbageIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, s := qmptest.Pipe(qmptest.Options{})
		defer s.Close()
		got := talk(t, near, `{"execute":]`)
		if text := fmt.Sprint(got[1]); !strings.Contains(text, "JSON parse error") {
			t.Errorf("got %s", text)
		}
		<-s.Done()
	})
}

// A call can be answered late, by another goroutine, in any order.
func Example() {
	near, far := net.Pipe()
	calls := make(chan *qmptest.Call, 2)
	server := qmptest.Start(far, qmptest.Options{Handlers: map[string]qmptest.Handler{
		"query-status": func(c *qmptest.Call) { calls <- c },
	}})
	defer server.Close()
	go func() {
		first, second := <-calls, <-calls
		server.Emit("STOP", nil)
		second.Return(map[string]any{"status": "second"})
		first.Fail("GenericError", "first")
	}()

	// The code under test has the other end; usually it is a qmp.Client.
	go fmt.Fprint(near, `{"execute":"qmp_capabilities"} {"execute":"query-status","id":1} {"execute":"query-status","id":2}`)
	decoder := json.NewDecoder(near)
	for range 5 {
		var message map[string]any
		if err := decoder.Decode(&message); err != nil {
			fmt.Println(err)
		}
		delete(message, "timestamp")
		text, _ := json.Marshal(message)
		fmt.Println(string(text))
	}
	// Output:
	// {"QMP":{"capabilities":[],"version":{"package":"qmptest","qemu":{"major":7,"micro":0,"minor":2}}}}
	// {"return":{}}
	// {"event":"STOP"}
	// {"id":2,"return":{"status":"second"}}
	// {"error":{"class":"GenericError","desc":"first"},"id":1}
}
