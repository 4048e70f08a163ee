// Command tinyguest builds the tiny Linux guest, or finds it in the cache, and
// prints where its files are:
//
//	kernel=/home/me/.cache/vmop/tinyguest/guest-0123456789abcdef/vmlinux
//	bzimage=/home/me/.cache/vmop/tinyguest/guest-0123456789abcdef/vmlinuz
//	initrd=/home/me/.cache/vmop/tinyguest/guest-0123456789abcdef/initrd
//
// With --out the files are put there as vmlinux, vmlinuz and initrd. The
// environment variable VMOP_CACHE names the cache folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/vmop/sdk/internal/tinyguest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("tinyguest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", "", "folder for links to (or copies of) vmlinux, vmlinuz and initrd")
	packageDir := flags.String("kernel-package-dir", "", "unpacked kernel package instead of one fetched with apt-get; / for the installed kernel")
	flavor := flags.String("flavor", "", `kernel: "" for the small one or "generic" for one with more drivers`)
	if err := flags.Parse(args); err != nil {
		return err
	}
	guest, err := tinyguest.Ensure(ctx, tinyguest.Options{
		CacheDir:         getenv("VMOP_CACHE"),
		Flavor:           tinyguest.Flavor(*flavor),
		KernelPackageDir: *packageDir,
		Progress:         stderr,
	})
	if err != nil {
		return err
	}
	if *out != "" {
		if guest, err = guest.Export(*out); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "kernel=%s\nbzimage=%s\ninitrd=%s\n", guest.Kernel, guest.BzImage, guest.Initrd)
	return err
}
