// Command go-host keeps a machine on this host, starts it in the background, waits
// for its guest, stops it, makes a snapshot and deletes it: what vmop-cli does by
// name.
//
//	go run ./examples/go-host examples/hello/vm.yaml IMAGES
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/spec"
)

func main() {
	do := run
	if len(os.Args) == 2 && os.Args[1] == "supervise" {
		// A machine in the background is a child of this program.
		do = func(ctx context.Context) error {
			_, err := host.Supervise(ctx, host.SuperviseOptions{Log: os.Stderr})
			return err
		}
	}
	if err := do(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	if len(os.Args) != 3 {
		return errors.New("usage: go-host MANIFEST IMAGES")
	}
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	objects, err := spec.Load(os.Args[1], data, spec.Options{Default: true, Validate: true})
	if err != nil || len(objects) != 1 {
		return fmt.Errorf("%d objects: %w", len(objects), err)
	}
	h, err := host.Open(host.Options{Getenv: os.Getenv})
	if err != nil {
		return err
	}
	given := host.Given{ImageRepository: os.Args[2]}
	m, err := h.Create(&objects[0], given)
	if err != nil {
		return err
	}
	defer func() {
		_, derr := m.Delete(host.DeleteOptions{Disks: true})
		err = errors.Join(err, derr)
	}()
	job, err := h.Prepare(ctx, &objects[0], host.JobOptions{Given: given})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := job.Start(ctx, host.StartOptions{Supervisor: []string{self, "supervise"}}); err != nil {
		return err
	}
	if m, err = h.Wait(ctx, m, host.ForRunning); err != nil {
		return err
	}
	fmt.Printf("%s: %s: %s\n", m.FullName(), m.Status, m.Message())
	if err := m.Stop(ctx, host.StopOptions{}); err != nil {
		return err
	}
	if m, err = h.Wait(ctx, m, host.ForStopped); err != nil {
		return err
	}
	fmt.Printf("%s: %s: %s\n", m.FullName(), m.Status, m.Message())
	snapshot, err := h.CreateSnapshot(ctx, m, "first", host.CopyOptions{})
	fmt.Printf("%s: snapshot %s of %d disks\n", m.FullName(), snapshot.Name, len(snapshot.Disks))
	return err
}
