// Command test-images builds the images that tests on a node run, and writes their archives into a
// folder: an empty one, or one that it makes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/vmop/sdk/internal/testimages"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: test-images DIR")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := os.MkdirAll(os.Args[1], 0o700)
	if err == nil {
		err = testimages.Build(ctx, ".", os.Args[1], os.Stderr)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-images:", err)
		os.Exit(1)
	}
}
