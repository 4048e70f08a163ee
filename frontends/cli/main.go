// Command vmop-cli works with virtual machine manifests on one host: it checks
// and renders them, tells what a change would do, and runs the machines without
// a cluster.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(Main(context.Background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
}
