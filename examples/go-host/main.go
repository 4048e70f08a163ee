// Command go-host makes a machine of a manifest, runs it, makes a snapshot and deletes it.
package main

import (
	"context"
	"log"
	"os"

	"github.com/vmop/sdk/vmop/host"
)

func main() {
	host.SuperviseIfAsked() // a machine's process is this program, started anew
	ctx := context.Background()
	h := must(host.Open(host.Options{}))
	m := must(h.CreateFile(os.Args[1], host.Given{ImageRepository: os.Args[2]}))
	defer func() { must(h.Delete(ctx, m, host.DeleteOptions{Disks: true})) }()
	m = must(h.Start(ctx, m, host.StartOptions{}))
	m = must(h.Wait(ctx, m, host.ForRunning))
	s := must(h.CreateSnapshot(ctx, m, "first", host.CopyOptions{}))
	log.Printf("%s: %s: snapshot %s of %d disks", m.FullName(), m.Status, s.Name, len(s.Disks))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Panicln(err) // after which the machine is still deleted
	}
	return value
}
