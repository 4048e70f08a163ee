// Command control-plane runs the Kubernetes API that the tests use, until it is
// interrupted, and prints what a shell needs to work with it:
//
//	export KUBECONFIG=/tmp/vmop-controlplane-123/admin.kubeconfig
//	export PATH=/home/me/.cache/vmop/controlplane/0123456789abcdef:$PATH
//
// With --controllers it has kube-controller-manager and kube-scheduler too. With
// --build it only builds the programs, or finds them in the cache, and prints
// their folder. The environment variable VMOP_CACHE names the cache folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/vmop/sdk/internal/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("control-plane", flag.ContinueOnError)
	flags.SetOutput(stderr)
	controllers := flags.Bool("controllers", false, "run kube-controller-manager and kube-scheduler too")
	build := flags.Bool("build", false, "build the programs, print their folder and end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *build {
		programs, err := controlplane.Ensure(ctx, controlplane.BuildOptions{Progress: stderr})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(stdout, programs.Dir)
		return err
	}
	cluster, err := controlplane.Start(ctx, controlplane.Options{Controllers: *controllers, Progress: stderr})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "export KUBECONFIG=%s\nexport PATH=%s:$PATH\n", cluster.Kubeconfig(), cluster.Programs().Dir); err != nil {
		_ = cluster.Stop()
		return err
	}
	_, _ = fmt.Fprintln(stderr, "the Kubernetes API runs until this is interrupted")
	<-ctx.Done()
	return cluster.Stop()
}
