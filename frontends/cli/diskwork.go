package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

type diskWork struct {
	*program
	c      *cli.Context
	client *cluster.Client
	action string
}

type diskDone struct {
	Namespace string
	Disk      string
	// Action is create, upload, download, resize, delete, attach or detach.
	Action string
	// Machine is that of attach and detach.
	Machine string
	File    *output.DownloadedFile
	// Phase is that of the disk or its attachment, Deleted, or DryRun.
	Phase   string
	Message string
	Done    bool
}

func printedResult(d *diskDone) *output.DiskResult {
	return &output.DiskResult{
		ObjectMeta: named(d.Namespace, d.Disk), Action: d.Action, VirtualMachineName: d.Machine, File: d.File, Done: d.Done,
		Observed: output.Result{Result: d.Phase, Message: d.Message},
	}
}

func (w *diskWork) request() (context.Context, context.CancelFunc) {
	return bounded(w.c, requestTimeout, "the API server did not answer")
}

// finish waits unless --no-wait is given, and prints the result. An incomplete action is an error.
func (w *diskWork) finish(out *diskDone, reserve time.Duration, wait func(ctx context.Context, tell func(string)) error) error {
	var failed error
	switch {
	case w.c.Bool("dry-run"):
		out.Phase, out.Message = phaseDryRun, "the cluster would take it"
	case w.c.Bool("no-wait"):
	default:
		failed = w.await(out, reserve, wait)
		out.Done = failed == nil
	}
	if format := w.c.String("output"); forPrograms(format) {
		if failed != nil {
			out.Message = failed.Error()
		}
		return errors.Join(w.printOne(format, printedResult(out)), failed)
	}
	what := fmt.Sprintf("Disk %s", fullName(out.Namespace, out.Disk))
	if w.c.Bool("image") {
		what = fmt.Sprintf("Image %s", fullName(out.Namespace, out.Disk))
	}
	if f := out.File; f != nil {
		what += fmt.Sprintf(" is in %s: %s, %s, SHA-256", textout.Cell(f.Path), f.Format, textout.Size(f.Size.Value()))
	}
	done := map[string]string{
		"create": "is there", "upload": "is there", "resize": "has the size", "delete": "is deleted",
		"attach": "is attached to " + out.Machine, "detach": "is detached from " + out.Machine,
	}
	if out.File != nil {
		done[out.Action] = out.File.SHA256
	}
	switch {
	case failed != nil:
		return fmt.Errorf("%s: %s: %w", fullName(out.Namespace, out.Disk), out.Action, failed)
	case out.Phase == phaseDryRun:
		fmt.Fprintf(w.stdout, "%s: %s: %s\n", what, out.Action, out.Message)
	case !out.Done:
		fmt.Fprintf(w.stdout, "%s: %s is asked for.\n", what, out.Action)
	case out.Phase == string(spec.DiskWaitForFirstConsumer):
		fmt.Fprintf(w.stdout, "%s %s: %s\n", what, done[out.Action], textout.Printable(out.Message))
	default:
		fmt.Fprintf(w.stdout, "%s %s.\n", what, done[out.Action])
	}
	return nil
}

func (w *diskWork) await(out *diskDone, reserve time.Duration, wait func(ctx context.Context, tell func(string)) error) error {
	signals, stop := signal.NotifyContext(w.c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	timeout := w.c.Duration("timeout")
	if timeout == 0 {
		timeout = reserve
	}
	ctx, cancel := context.WithTimeoutCause(signals, timeout, errTimeout)
	defer cancel()
	what := fullName(out.Namespace, out.Disk) + ": " + out.Action
	tell := func(string) {}
	if !forPrograms(w.c.String("output")) {
		g := w.begin(what)
		defer g.end()
		tell = func(text string) { g.set(what + ": " + text) }
	}
	err := wait(ctx, tell)
	switch {
	case err == nil:
		return nil
	case out.Action == "download" && (errors.Is(err, errTimeout) || signals.Err() != nil):
		return fmt.Errorf("it was ended, and the same command goes on with what has come: %s", orUnknown(out.Message))
	case errors.Is(err, errTimeout):
		return fmt.Errorf("it takes longer than %v, and goes on: %s", timeout, orUnknown(out.Message))
	case signals.Err() != nil:
		return fmt.Errorf("the wait has ended, and it goes on: %s", orUnknown(out.Message))
	case errors.Is(err, cluster.ErrGone):
		return errors.New("it was deleted")
	}
	return err
}

// createReserve is the default timeout for a disk with a source: as long as one attempt may take.
const createReserve = 24 * time.Hour

const phaseDeleted = "Deleted"

func (w *diskWork) sizeArgument(text string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 || q.Value() > maxDisk {
		return q, usagef(w.c, "%s: %q: want a size such as 20Gi", w.action, text)
	}
	return q, nil
}

// maxDisk, in bytes, is more than any file system has, and leaves room for arithmetic.
const maxDisk = 1 << 60
