// Command go-host makes a machine of a manifest, runs it, makes a snapshot and deletes it:
// go-host MANIFEST IMAGES, where IMAGES is the folder with what the manifest boots.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/vmop/sdk/vmop/host"
)

func main() {
	host.SuperviseIfAsked() // a machine's process is this program, started anew
	if len(os.Args) != 3 {
		log.Fatal("usage: go-host MANIFEST IMAGES")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, manifest, images string) (err error) {
	h, err := host.Open(host.Options{})
	if err != nil {
		return err
	}
	m, err := h.CreateFile(manifest, host.Given{ImageRepository: images})
	if err != nil {
		return err
	}
	defer func() {
		_, deleted := h.Delete(ctx, m, host.DeleteOptions{Disks: true})
		err = errors.Join(err, deleted)
	}()
	if m, err = h.Start(ctx, m, host.StartOptions{}); err != nil {
		return err
	}
	if m, err = h.Wait(ctx, m, host.ForRunning); err != nil {
		return err
	}
	s, err := h.CreateSnapshot(ctx, m, "first", host.CopyOptions{})
	if err == nil {
		log.Printf("%s: %s: snapshot %s of %d disks", m.FullName(), m.Status, s.Name, len(s.Disks))
	}
	return err
}
