package runner

import (
	"context"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runner/tap"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Options configure an [Engine].
type Options struct {
	// Config describes the machine. runnerconfig.Default is applied to it; then it must be valid,
	// see runnerconfig.Validate.
	Config runnerconfig.Config
	// Host is the result of package hostprobe.
	Host qemucmd.Host
	// Directories are the machine's; see [DefaultDirectories]. An empty one is taken from the
	// configuration, as machineconfig.ForHost sets it. Both are needed.
	Directories Directories
	// Template is the text of a custom machine type; empty is the standard one.
	Template string
	// DisplaySecretDir holds the files display-password and password-expiry;
	// empty means that the display has no password.
	DisplaySecretDir string
	// Secrets are the contents of Secrets by their names and keys: documents for cloud-init of
	// which the configuration names no file.
	Secrets map[string]map[string][]byte
	// Reporter receives states and messages; it may be nil.
	Reporter Reporter
	// ConsoleLog reports each line of the guest's serial console as a message, with the source
	// "console".
	ConsoleLog bool
	// Volumes are directories whose content others may have written, such as those in which a pod's
	// volumes are mounted: no symbolic link below them is followed to an image or to the machine's
	// data.
	Volumes []string
	// Images are such directories with read-only images of CDs and kernels: links below them may
	// lead to another file in the same directory, and nowhere else.
	Images []string
	// NewDisks are the names of disks whose images may be created anew, empty, although the machine
	// has had others.
	NewDisks []string
	// MakeImage creates the disks of drives with an image; nil creates none.
	MakeImage ImageMaker
	// Taps are open tap interfaces, by the index of their network; see [OpenTaps]. [Engine.Run]
	// passes them to QEMU, closes them, and opens those that are missing.
	Taps map[int]*tap.Device
	// Emulation is why Host has no KVM.
	Emulation Emulation
	// Field translates the name of a configuration's field, such as "vm.drives[0]", to that of the
	// source of the configuration, and Machine a data directory to its machine's name; if nil or if
	// the result is empty, messages have the original.
	Field, Machine func(string) string
	// Version is the program's, for the state.
	Version string

	clock clock
	// holds is how many seconds a guest's requests wait for an unreachable exporter; 0 is
	// reconnectDelay. Tests wait longer, on busy hosts.
	holds int
}

// ImageMaker creates the missing file of a drive from the drive's Image: raw or qcow2, with at
// least its Size. The file gets its name once it is complete and on stable storage. progress is
// called with a description of the progress. The error names the image.
type ImageMaker func(ctx context.Context, d runnerconfig.Drive, progress func(string)) error
