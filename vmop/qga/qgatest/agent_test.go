package qgatest_test

import (
	"bufio"
	"net"
	"testing"

	"github.com/vmop/sdk/vmop/qga/qgatest"
)

func TestHalfARequestIsForgottenAtTheSentinel(t *testing.T) {
	client, server := net.Pipe()
	agent := &qgatest.Agent{}
	served := make(chan struct{})
	go func() { defer close(served); agent.Serve(server) }()
	go func() {
		_, _ = client.Write([]byte("{\"execute\":\"guest-p\xff{\"execute\":\"guest-sync-delimited\",\"arguments\":{\"id\":7}}{\"execute\":\"none\"}"))
	}()
	r := bufio.NewReader(client)
	for _, want := range []string{
		`{"error": {"class": "GenericError", "desc": "JSON parse error, stray input"}}` + "\n",
		"\xff" + `{"return":7}` + "\n",
		`{"error":{"class":"CommandNotFound","desc":"The command none has not been found"}}` + "\n",
	} {
		if got, err := r.ReadString('\n'); got != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	_ = client.Close()
	<-served
}
