package testbin_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
)

// failing is a test that records its failure.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestFindFailsWithTheCommandThatInstalls(t *testing.T) {
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		testbin.Find(f, "no-such-program-anywhere")
	}()
	<-done
	if !strings.Contains(f.message, "no-such-program-anywhere") || !strings.Contains(f.message, "make deps") {
		t.Errorf("failure says %q", f.message)
	}
}

func TestFindReturnsAPath(t *testing.T) {
	if path := testbin.Find(t, "sh"); !strings.HasSuffix(path, "/sh") {
		t.Errorf("sh is at %q", path)
	}
}
