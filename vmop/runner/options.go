package runner

import (
	"context"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runner/tap"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Options configure an [Engine].
type Options struct {
	// Config describes the machine. What it leaves out is as runnerconfig.Default
	// has it; it must be valid then, see runnerconfig.Validate.
	Config runnerconfig.Config
	// Host is what the machine runs on; package hostprobe finds out.
	Host qemucmd.Host
	// Directories are the machine's; see [DefaultDirectories]. One that is empty is that
	// of the configuration, as machineconfig.ForHost makes it. Both are needed.
	Directories Directories
	// Template is the text of a custom machine type; empty is the standard one.
	Template string
	// DisplaySecretDir holds the files display-password and password-expiry;
	// empty means that the display has no password.
	DisplaySecretDir string
	// Secrets are the contents of Secrets by their names and keys: documents for
	// cloud-init of which the configuration names no file.
	Secrets map[string]map[string][]byte
	// Reporter receives what happens; it may be nil.
	Reporter Reporter
	// ConsoleLog passes to the reporter each line that the guest prints on its serial console, with
	// the source "console".
	ConsoleLog bool
	// Volumes are directories whose content others may have written, such as those
	// in which a pod's volumes are mounted: no symbolic link below them is followed
	// to an image or to the machine's data.
	Volumes []string
	// Images are such directories with images that are only read, of CDs and kernels:
	// links below them may lead to another file in the same directory, and nowhere
	// else.
	Images []string
	// NewDisks are the names of disks whose images may be made anew, empty, although
	// the machine has had others.
	NewDisks []string
	// MakeImage makes the disks of drives with an image; nil makes none.
	MakeImage ImageMaker
	// Taps are tap interfaces that are open already, by the position of their
	// network; see [OpenTaps]. The engine hands them to QEMU and closes them, once
	// [Engine.Run] was called. It opens those that are missing.
	Taps map[int]*tap.Device
	// Emulation is why Host has no KVM.
	Emulation Emulation
	// Field is what whoever has written the machine down calls a field of its
	// configuration, such as "vm.drives[0]", and Machine the machine of a data directory;
	// nil, and an empty name, leave both as they are.
	Field, Machine func(string) string
	// Version of the program, for the state.
	Version string

	clock clock
	// holds is how many seconds the requests of a guest wait for an exporter that is gone;
	// 0 is reconnectDelay. Tests wait longer, on machines that are busy.
	holds int
}

// ImageMaker makes the missing file of a drive from the drive's Image: raw or qcow2, with at least
// its Size. The file gets its name once it is complete and on stable storage. progress is called
// with a description of how far it is. The error names the image.
type ImageMaker func(ctx context.Context, d runnerconfig.Drive, progress func(string)) error
