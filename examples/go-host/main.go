// Command go-host keeps a machine on this host, starts it in the background, waits
// for its guest, makes a snapshot while it runs, stops it and deletes it.
//
//	go run ./examples/go-host examples/hello/vm.yaml IMAGES
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/vmop/sdk/vmop/host"
)

func main() {
	host.SuperviseIfAsked() // a machine's process is this program, started anew
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, manifest, images string) (err error) {
	h, err := host.Open(host.Options{Getenv: os.Getenv})
	if err != nil {
		return err
	}
	m, err := h.CreateFile(manifest, host.Given{ImageRepository: images})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(ctx, h, m)) }()
	if m, err = h.Start(ctx, m, host.StartOptions{}); err != nil {
		return err
	}
	if m, err = h.Wait(ctx, m, host.ForRunning); err != nil {
		return err
	}
	snapshot, err := h.CreateSnapshot(ctx, m, "first", host.CopyOptions{})
	fmt.Printf("%s: %s: snapshot %s of %d disks\n", m.FullName(), m.Status, snapshot.Name, len(snapshot.Disks))
	return err
}

func remove(ctx context.Context, h *host.Host, m host.Machine) error {
	m, err := h.Machine(m.Namespace, m.Name) // as it is now
	if err != nil {
		return err
	}
	if err := m.Stop(ctx, host.StopOptions{}); err != nil {
		return err
	}
	if m, err = h.Wait(ctx, m, host.ForStopped); err != nil {
		return err
	}
	fmt.Printf("%s: %s: %s\n", m.FullName(), m.Status, m.Message())
	_, err = m.Delete(host.DeleteOptions{Disks: true})
	return err
}
