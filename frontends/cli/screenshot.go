package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/atomicfile"
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

// The formats of pictures, as QEMU names them.
const (
	formatPNG = "png"
	formatPPM = "ppm"
)

func (p *program) screenshot(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef(c, "want the NAME of a machine and a FILE, and found %d arguments", c.NArg())
	}
	target, format := c.Args().Get(1), formatPNG
	switch ext := strings.ToLower(filepath.Ext(target)); {
	case target == "-" && isTerminal(p.stdout):
		return usagef(c, "a picture would garble the terminal: want a FILE, or a redirection")
	case target == "-" || ext == ".png":
	case ext == ".ppm":
		format = formatPPM
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
		// Before anything is done. A file that comes meanwhile is found later.
		if err := mayWrite(target, c.Bool("force")); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var picture []byte
	err = p.askMonitor(ctx, m.Socket(qemucmd.SocketToolMonitor), func(ctx context.Context, client *qmp.Client) (err error) {
		picture, err = screendump(ctx, client, output, format)
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

// screendump has QEMU take a picture, in memory: QEMU gets no path to write to,
// and nothing is left behind whatever happens.
func screendump(ctx context.Context, c *qmp.Client, output int, format string) ([]byte, error) {
	shot := qmp.Screendump{Format: format}
	if output > 0 { // the first one is QEMU's default, whatever the device is called
		if err := hasOutput(ctx, c, output); err != nil {
			return nil, err
		}
		shot.Device, shot.Head = qemucmd.VideoID, output
	}
	fd, err := unix.MemfdCreate("screenshot", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for the picture: %w", err)
	}
	memory := os.NewFile(uintptr(fd), "screenshot")
	defer memory.Close()
	// QEMU takes the member of a set whose access mode is exactly what it wants.
	w, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", memory.Fd()), os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("memory for the picture: %w", err)
	}
	set, err := qmp.Do(ctx, c, qmp.AddFD{Opaque: "screenshot"}, qmp.WithFile(w))
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	shot.Filename = fmt.Sprintf("/dev/fdset/%d", set.FDSetID)
	_, err = qmp.Do(ctx, c, shot)
	_, rerr := qmp.Do(ctx, c, qmp.RemoveFD{FDSetID: set.FDSetID, FD: &set.FD})
	if err = errors.Join(err, rerr); err != nil {
		return nil, err
	}
	picture, err := io.ReadAll(memory)
	if err == nil && len(picture) == 0 {
		err = errors.New("QEMU wrote nothing")
	}
	return picture, err
}

// hasOutput says whether the graphics adapter has an output of that number.
// QEMU's own words would be of heads and consoles.
func hasOutput(ctx context.Context, c *qmp.Client, output int) error {
	raw, err := qmp.Do(ctx, c, qmp.QOMGet{Path: qemucmd.DevicePath(qemucmd.VideoID), Property: "max_outputs"})
	var outputs int
	if err == nil {
		err = json.Unmarshal(raw, &outputs)
	}
	switch {
	case err != nil:
		return fmt.Errorf("output %d: the number of outputs is not known: %w", output, err)
	case output >= outputs:
		return fmt.Errorf("there is no output %d: the machine was started with %d, counted from 0; spec.vm.display.outputs says how many", output, outputs)
	}
	return nil
}

// mayWrite says whether a file may be written: it is not there, or it is a
// regular one and may be replaced.
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
