package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/imagesource"
)

// asInit makes the test binary a process that reaps orphans all the time, and converts the image
// with this path meanwhile.
const asInit = "VMOP_TEST_INIT"

func convertAsInit(image string) int {
	ctx, cancel := context.WithCancel(context.Background())
	var reaper sync.WaitGroup
	for range 4 { // one may be late
		reaper.Go(func() {
			for ctx.Err() == nil {
				reap()
			}
		})
	}
	defer reaper.Wait()
	defer cancel()
	for n := range 20 {
		if err := imagesource.Convert(ctx, image, imageinspect.FormatRaw, image+strconv.Itoa(n), imageinspect.FormatQcow2, func(int64, int64) {}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// What is taken for an orphan is none of the programs that the runner has started itself, and waits
// for.
func TestReapLeavesOwnPrograms(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := testbin.Self(t.Context(), t, asInit+"="+image).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
