package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmop/sdk/vmop/runner"
)

// In a container only the first signal counts; elsewhere a later one hurries.
func TestSignalsThatCount(t *testing.T) {
	for _, container := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			request := stopRequests(func() { n++ }, container)
			request()
			request()
			time.Sleep(2 * runner.SameRequest)
			request()
			if want := map[bool]int{true: 1, false: 2}[container]; n != want {
				t.Errorf("container %v: %d requests, want %d", container, n, want)
			}
		})
	}
}
