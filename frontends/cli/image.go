package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/imagesource"
)

const imageActions = "list|pull|delete|prune"

func (p *program) imageCommand() *cli.Command {
	return &cli.Command{
		Name:      "image",
		Usage:     "fetch, list and delete the images that disks of this host are made of",
		ArgsUsage: imageActions + " [IMAGE]",
		Description: "Images of servers and registries are fetched once: vmop-cli run --image copies its disk\n" +
			"from the one that is here. No machine depends on an image; delete and prune remove no\n" +
			"machine's disk, and no image that is in use.\n\n" +
			"pull fetches IMAGE, a URL of http or https, oci://REGISTRY/REPOSITORY:TAG of a container\n" +
			"image that holds a disk (/disk/*), or a name such as debian-13. Where there is an earlier\n" +
			"one, the server is asked whether it has another by now, which is fetched beside it. One\n" +
			"that is interrupted goes on with the next pull.\n\n" +
			"delete wants the DIGEST that list shows, or where the image came from. prune deletes what\n" +
			"was not used for --unused-for.\n\n" +
			"Examples:\n" +
			"  vmop-cli image pull https://example.com/debian.qcow2\n" +
			"  vmop-cli image list\n" +
			"  vmop-cli image delete https://example.com/debian.qcow2\n" +
			"  vmop-cli image prune --unused-for 24h",
		Flags: append([]cli.Flag{
			dataDirFlag(),
			&cli.StringFlag{Name: "checksum", Usage: "pull: that of the image, `SUM`: sha256:HEX or sha512:HEX"},
			&cli.DurationFlag{Name: "unused-for", Value: host.PruneAfter, Usage: "prune: the `DURATION`, such as 24h; 0 for all that are not in use"},
			outputFlag("list", formatTable),
		}, sourceFlags()...),
		Action: p.image,
	}
}

func sourceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "image-path", Usage: "the `PATH` of the disk in a container image (default: the only file in /disk)"},
		&cli.StringFlag{Name: "image-ca", Usage: "`FILE` with certificates (PEM) that the image's server may be trusted by, beside this host's"},
	}
}

// imageSource returns the image of a name with the options of sourceFlags and --checksum.
func imageSource(c *cli.Context, name string) (host.Image, error) {
	image := host.Image{Source: name, Checksum: c.String("checksum"), Path: c.String("image-path")}
	if public, ok := host.FindPublicImage(name); ok {
		if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) { // an existing file of that name is meant itself
			image.Source, image.Checksums = public.URL, public.Checksums
		}
	} else if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) && name != "" && !strings.ContainsAny(name, "/.:") {
		return image, fmt.Errorf("image %s: there is no such file, and the names of public images are %s", name, publicNames())
	}
	if file := c.String("image-ca"); file != "" {
		ca, err := os.ReadFile(file)
		if err != nil {
			return image, err
		}
		image.CA = ca
	}
	return image, image.Check()
}

func (p *program) image(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 {
		return usagef(c, "want list, pull, delete or prune")
	}
	action, args := args[0], args[1:]
	format, err := outputFormat(c, formatTable)
	if err != nil {
		return err
	}
	switch {
	case action != "list" && action != "pull" && action != "delete" && action != "prune":
		return usagef(c, "%q: want list, pull, delete or prune", action)
	case c.IsSet("output") && action != "list":
		return usagef(c, "--output is for list")
	case c.IsSet("unused-for") && action != "prune":
		return usagef(c, "--unused-for is for prune")
	case (c.IsSet("checksum") || c.IsSet("image-path") || c.IsSet("image-ca")) && action != "pull":
		return usagef(c, "--checksum, --image-path and --image-ca are for pull")
	case len(args) == 0 && (action == "pull" || action == "delete"):
		return usagef(c, "%s: want an IMAGE", action)
	case len(args) > 1 || len(args) == 1 && action != "pull" && action != "delete":
		return usagef(c, "%s: found %q, which is too much", action, args[len(args)-1])
	}
	h, err := p.host(c)
	if err != nil {
		return err
	}
	switch action {
	case "pull":
		return p.pullImage(c, h, args[0])
	case "delete":
		gone, err := h.DeleteImage(c.Context, args[0])
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "Image %s is deleted (%s).\n", shortDigest(gone.Digest), textout.Size(gone.Allocated))
		return nil
	case "prune":
		return p.pruneImages(c, h)
	}
	return p.listImages(c, h, format)
}

func (p *program) pullImage(c *cli.Context, h *host.Host, name string) error {
	image, err := imageSource(c, name)
	if err != nil {
		return err
	}
	var got host.CachedImage
	var fetched bool
	err = p.fetching(c, image.Source, func(ctx context.Context, o host.ImageOptions) (err error) {
		o.Refresh = true
		got, fetched, err = h.PullImage(ctx, image, o)
		return err
	})
	if err != nil {
		return err
	}
	what := "is here already" // and it is known what it must be
	switch {
	case fetched:
		what = "is fetched"
	case image.Checksum == "": // its server was asked
		what = "is up to date"
	}
	fmt.Fprintf(p.stdout, "Image %s %s: %s, a disk of %s, which takes %s.\n", shortDigest(got.Digest), what, got.Format, textout.Size(got.Size), textout.Size(got.Allocated))
	return nil
}

func (p *program) pruneImages(c *cli.Context, h *host.Host) error {
	done, err := h.PruneImages(c.Context, c.Duration("unused-for"))
	for _, i := range done.Images {
		fmt.Fprintf(p.stdout, "deleted: %s (%s) %s\n", shortDigest(i.Digest), textout.Size(i.Allocated), textout.Cell(strings.Join(i.Sources, " ")))
	}
	if done.Partial > 0 {
		fmt.Fprintf(p.stdout, "deleted: %d incomplete downloads\n", done.Partial)
	}
	if err == nil {
		fmt.Fprintf(p.stdout, "%s are free again.\n", textout.InWords(done.Freed))
	}
	return err
}

func (p *program) listImages(c *cli.Context, h *host.Host, format string) error {
	all, err := h.Images()
	if err != nil {
		return err
	}
	if forPrograms(format) {
		return printList(p, format, printedImages(all))
	}
	if len(all) == 0 {
		p.note("There are no images. Fetch one with: %s", p.hint(c, "image", "pull", "IMAGE"))
		return nil
	}
	at := now()
	rows := make([][]string, len(all))
	for i, m := range all {
		rows[i] = []string{shortDigest(m.Digest), string(m.Format), textout.Size(m.Size), textout.Size(m.Allocated), textout.Age(at, m.Fetched), textout.Age(at, m.Used), textout.Cell(textout.OrNone(strings.Join(m.Sources, " ")))}
		if m.InUse != "" {
			p.note("image %s is %s.", shortDigest(m.Digest), m.InUse)
		}
	}
	return textout.Table(p.stdout, []string{"DIGEST", "FORMAT", "SIZE", "ALLOCATED", "AGE", "USED", "SOURCE"}, rows)
}

func shortDigest(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(len(digest), 12)]
}

func (p *program) fetching(c *cli.Context, source string, do func(context.Context, host.ImageOptions) error) error {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	name := imagesource.Source{Location: source}.String()
	g := p.begin("looking for " + name)
	err := do(ctx, host.ImageOptions{
		Progress: func(at imagesource.Progress) { g.set(imageProgress(name, at)) },
		Waiting:  func(who string) { g.set(fmt.Sprintf("waiting for %s, which fetches %s", who, name)) },
	})
	g.end()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: there is no image; the same command goes on with what was downloaded, if the server allows it", err)
	}
	return err
}

const barWidth = 20

func imageProgress(name string, at imagesource.Progress) string {
	text := string(at.Step) + " " + name
	if at.Total > 0 {
		done := min(max(at.Done, 0), at.Total)
		n := int(float64(done) / float64(at.Total) * barWidth)
		text += fmt.Sprintf(" [%s%s] %d%%, %s of %s", strings.Repeat("=", n), strings.Repeat(" ", barWidth-n), int(float64(done)/float64(at.Total)*100), textout.Size(done), textout.Size(at.Total))
	} else if at.Done > 0 {
		text += ": " + textout.Size(at.Done)
	}
	if at.Rate > 0 {
		text += fmt.Sprintf(", %s/s", textout.Size(at.Rate))
		if left := at.Total - at.Done; left > 0 {
			text += fmt.Sprintf(", %s left", (time.Duration(left/at.Rate) * time.Second).String())
		}
	}
	return text
}

func publicNames() string {
	var names []string
	for _, p := range host.PublicImages() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}
