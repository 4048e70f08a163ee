// Command debianguest writes the Debian guest of the tests as an image that boots by UEFI
// firmware, as those of clouds do: debianguest FILE.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/vmop/sdk/internal/debianguest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "debianguest: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: debianguest FILE")
	}
	guest, err := debianguest.Ensure(ctx, debianguest.Options{})
	if err != nil {
		return err
	}
	return guest.WriteCloudImage(ctx, args[0])
}
