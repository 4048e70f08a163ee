package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
)

func (p *program) diskCommand() *cli.Command {
	return &cli.Command{
		Name:      "disk",
		Usage:     "list, describe, make, upload, download, enlarge, attach and detach disks, on this host or in a cluster",
		ArgsUsage: "list|describe|create|upload|download|resize|delete|attach|detach NAME [DISK] [SIZE|FILE]",
		Description: "On this host list shows a machine's disks, with the names that other commands know them by.\n\n" +
			"resize makes one larger, also while the machine runs: the guest sees the new size at\n" +
			"once, and has to enlarge its partitions itself (growpart, resize2fs). The manifest says\n" +
			"the new size from then on, if it said one. No disk is made smaller. A qcow2 image of a\n" +
			"machine that does not run is enlarged by qemu-img.\n\n" +
			"attach gives the machine another disk, an image (raw or qcow2) that is there, also while\n" +
			"it runs, and remembers it. detach takes a disk out; its image stays. A machine that runs\n" +
			"can only lose what was attached while it ran, and its guest has to agree: unmount the\n" +
			"disk there first.\n\n" +
			"In a cluster (--cluster) disks exist by themselves (kubectl get vd): create DISK SIZE makes\n" +
			"one, empty or of the source of --from; list [DISK...] shows those of the namespace, and\n" +
			"describe DISK says of one what it waits for, who has it and what to do next; upload\n" +
			"DISK FILE makes one of a file (raw, qcow2, vmdk or vdi, also packed by gzip, xz or zstd),\n" +
			"or with --image an image that disks are made of, and goes on with what was cut off; download\n" +
			"DISK FILE is the other way round, while no machine has the disk; resize\n" +
			"DISK SIZE enlarges one, also for the guest of a machine that runs; delete DISK deletes one\n" +
			"that no machine has, with what is on it. attach NAME DISK gives one to a machine that runs\n" +
			"(kubectl get vmbda), as long as detach NAME DISK does not take it back. The commands wait\n" +
			"until it is done; the exit code is 1 if it fails or takes longer than --timeout, and a\n" +
			"wait that is ended, as by Ctrl-C, ends nothing else.\n\n" +
			"Examples:\n" +
			"  vmop-cli disk list web\n" +
			"  vmop-cli disk resize web system 20Gi\n" +
			"  vmop-cli disk attach web archive archive.qcow2\n" +
			"  vmop-cli disk detach web archive\n" +
			"  vmop-cli disk create --cluster -n shop system 20Gi --from https://images.example.org/debian.qcow2\n" +
			"  vmop-cli disk upload --cluster -n shop archive archive.qcow2\n" +
			"  vmop-cli disk download --cluster -n shop archive archive-copy.qcow2\n" +
			"  vmop-cli disk list --cluster -n shop\n" +
			"  vmop-cli disk describe --cluster -n shop system\n" +
			"  vmop-cli disk resize --cluster -n shop system 40Gi\n" +
			"  vmop-cli disk attach --cluster -n shop web data\n" +
			"  vmop-cli disk detach --cluster -n shop web data\n" +
			"  vmop-cli disk delete --cluster -n shop data --yes",
		Flags: eitherFlags(machineFlags(append([]cli.Flag{
			outputFlag("list and of everything in a cluster", formatTable),
		}, clusterDiskFlags()...)...)...),
		Action: p.disk,
	}
}

const diskTimeout = 30 * time.Second

func (p *program) disk(c *cli.Context) error {
	if inCluster(c) {
		return p.clusterDisks(c)
	}
	if err := onlyInClusters(c); err != nil {
		return err
	}
	args := c.Args().Slice()
	if len(args) > 0 && (args[0] == "upload" || args[0] == "download") {
		return usagef(c, "%s is for a cluster (--cluster, --context or --kubeconfig): on this host disks are files, and attach gives a machine a FILE as a disk", args[0])
	}
	if len(args) > 0 && (args[0] == "create" || args[0] == "delete" || args[0] == "describe") {
		return usagef(c, "%s is for a cluster (--cluster, --context or --kubeconfig): on this host disks come and go with their machines", args[0])
	}
	if len(args) < 2 {
		return usagef(c, "want list, resize, attach or detach, and the NAME of a machine, and found %s", arguments(len(args)))
	}
	action, args := args[0], args[1:]
	if err := p.checkDiskUse(c, action, args); err != nil {
		return err
	}
	h, err := p.host(c)
	if err != nil {
		return err
	}
	m, err := p.find(c, args[0])
	if err != nil {
		return err
	}
	ctx, cancel := bounded(c, diskTimeout, "QEMU takes too long")
	defer cancel()
	switch action {
	case "attach":
		disk, err := h.AttachDisk(ctx, m, args[1], args[2])
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "Disk %s of %s is %s.\n", disk, m.FullName(), textout.Cell(args[2]))
		return nil
	case "detach":
		path, err := h.DetachDisk(ctx, m, args[1])
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "Disk %s of %s is detached. Its image stays: %s\n", args[1], m.FullName(), textout.Cell(path))
		return nil
	case "list":
		disks, err := h.Disks(ctx, m)
		if err != nil {
			return err
		}
		return p.writeDisks(&m, disks, c.String("output"))
	}
	want, err := resource.ParseQuantity(args[2])
	if err != nil || want.Sign() <= 0 || want.Value() > maxDisk {
		return usagef(c, "resize: %q: want a size such as 20Gi", args[2])
	}
	r, err := h.ResizeDisk(ctx, m, args[1], want.Value())
	if err != nil {
		return err
	}
	return p.tellResized(&m, r)
}

func (p *program) checkDiskUse(c *cli.Context, action string, args []string) error {
	if _, err := outputFormat(c, formatTable); err != nil {
		return err
	}
	switch {
	case action != "list" && action != "resize" && action != "attach" && action != "detach":
		return usagef(c, "%q: want list, resize, attach or detach", action)
	case c.IsSet("output") && action != "list":
		return usagef(c, "--output is for list")
	case action == "list" && len(args) != 1:
		return usagef(c, "list: found %q, which is too much", args[len(args)-1])
	case action == "resize" && len(args) != 3:
		return usagef(c, "resize: want the NAME of a machine, the name of its DISK and its new SIZE; see %s", p.hint(c, "disk", "list", args[0]))
	case action == "attach" && len(args) != 3:
		return usagef(c, "attach: want the NAME of a machine, a name for its new DISK, and the FILE with the image")
	case action == "detach" && len(args) != 2:
		return usagef(c, "detach: want the NAME of a machine, and the name of its DISK; see %s", p.hint(c, "disk", "list", args[0]))
	}
	return nil
}

func (p *program) writeDisks(m *host.Machine, disks []host.Disk, format string) error {
	if forPrograms(format) {
		return printList(p, format, printedDisks(m, disks))
	}
	var rows [][]string
	for _, d := range disks {
		what := "image"
		if !d.Own {
			what = "given"
		}
		size := textout.Size(d.Size)
		if d.Size == 0 {
			size = textout.None
		}
		rows = append(rows, []string{d.Name, size, textout.Size(d.Allocated), textout.OrNone(string(d.Format)), what, textout.Cell(d.Path)})
		if d.Problem != "" {
			p.note("disk %s: %s", d.Name, d.Problem)
		}
	}
	return textout.Table(p.stdout, []string{"DISK", "SIZE", "ALLOCATED", "FORMAT", "KIND", "PATH"}, rows)
}

func (p *program) tellResized(m *host.Machine, r host.ResizedDisk) error {
	switch {
	case r.Waiting != "":
		fmt.Fprintf(p.stdout, "Disk %s of %s grows with the next start.\n", r.Name, m.FullName())
		return errors.New(r.Waiting)
	case r.Has == r.Had:
		fmt.Fprintf(p.stdout, "Disk %s of %s has %s already.\n", r.Name, m.FullName(), textout.Size(r.Has))
	default:
		fmt.Fprintf(p.stdout, "Disk %s of %s has grown from %s to %s.\n", r.Name, m.FullName(), textout.Size(r.Had), textout.Size(r.Has))
		p.note("The guest may enlarge its partitions and file systems now.")
	}
	return nil
}
