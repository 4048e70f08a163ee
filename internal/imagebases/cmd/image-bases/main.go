// Command image-bases asks the registries which images the names in a file of bases lead
// to now (deploy/images/bases), writes their digests there, and prints what has changed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/vmop/sdk/internal/imagebases"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image-bases:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("found %d arguments; give the file", len(args))
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	changed, err := imagebases.Renew(ctx, args[0])
	for _, b := range changed {
		fmt.Println(b.Name, b.Image)
	}
	return err
}
