// Command csi builds the programs of CSI that tests on a node run, and prints their folder.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/vmop/sdk/internal/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	dir, err := node.BuildCSI(ctx, "", os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "csi:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}
