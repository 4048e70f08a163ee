package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/runner"
)

func TestWarningsAreToldOnce(t *testing.T) {
	var out bytes.Buffer
	w := &warningLog{log: &runner.LogReporter{Out: &out}, told: map[string]bool{}}
	for range 3 {
		w.HandleWarningHeader(299, "agent", `unknown field "status.accelerator"`)
		w.HandleWarningHeader(299, "agent", `unknown field "status.hostName"`)
	}
	w.HandleWarningHeader(199, "agent", "not for people")
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "status.hostName") {
		t.Errorf("log:\n%s", got)
	}
}
