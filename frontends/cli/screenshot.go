package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

func (p *program) screenshotCommand() *cli.Command {
	return &cli.Command{
		Name:      "screenshot",
		Usage:     "take a picture of a machine's screen",
		ArgsUsage: "NAME FILE",
		Description: "FILE ends in .png or .ppm, which is the format; - is the standard output, in PNG. A\n" +
			"file that exists is replaced with --force only, and always as a whole. Nobody but you\n" +
			"can read it: a screen may show secrets.\n\n" +
			"A machine has as many outputs as its manifest's spec.vm.display.outputs says, counted from\n" +
			"0. Of one that the guest has not switched on, QEMU makes a picture that says so.\n\n" +
			"Examples:\n" +
			"  vmop-cli screenshot hello hello.png\n" +
			"  vmop-cli screenshot hello - >hello.png\n" +
			"  vmop-cli screenshot hello second.png --output 1",
		Flags: machineFlags(
			&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "replace FILE if it exists", DisableDefaultText: true},
			&cli.IntFlag{Name: "output", Usage: "the `NUMBER` of the machine's output", DefaultText: "0, the first"},
		),
		Action: p.screenshot,
	}
}

func (p *program) screenshot(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef(c, "want the NAME of a machine and a FILE, and found %s", arguments(c.NArg()))
	}
	target, format := c.Args().Get(1), host.PicturePNG
	switch ext := strings.ToLower(filepath.Ext(target)); {
	case target == "-" && isTerminal(p.stdout):
		return usagef(c, "a picture would garble the terminal: want a FILE, or a redirection")
	case target == "-" || ext == ".png":
	case ext == ".ppm":
		format = host.PicturePPM
	default:
		return usagef(c, "%q: want a FILE that ends in .png or .ppm, or -", target)
	}
	output := c.Int("output")
	if output < 0 {
		return usagef(c, "--output %d: outputs are counted from 0", output)
	}
	m, err := p.active(c, c.Args().First())
	if err != nil {
		return err
	}
	if target != "-" {
		// Checked before anything is done. A file that is created meanwhile is detected later.
		if err := mayWrite(target, c.Bool("force")); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var picture []byte
	err = p.askMonitor(ctx, m.Socket(qemucmd.SocketToolMonitor), func(ctx context.Context, client *qmp.Client) (err error) {
		picture, err = host.Screenshot(ctx, client, host.ScreenshotOptions{Output: output, Format: format})
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("screenshot %s: %w", m.FullName(), err)
	case target == "-":
		_, err = p.stdout.Write(picture)
	case c.Bool("force"):
		err = atomicfile.Replace(target, picture)
	default:
		err = createFile(target, picture)
	}
	return err
}

// mayWrite reports whether a file may be written: it does not exist, or it is a regular one and may
// be replaced.
func mayWrite(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !force:
		return fmt.Errorf("%s exists; --force replaces it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: it is not replaced", path)
	}
	return nil
}
