package host

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Untouched is the state of a machine before the first start that creates something of it: UUID,
// record, UEFI variables, disks. A start that fails before the guest executes leaves only that,
// what was given for it, its log and its state.
type Untouched struct {
	// Files are the names of all files in the machine's directory.
	Files []string
	// Record is the content of machine.json, nil if there was none.
	Record []byte
	// Definition is the machine's definition.
	Definition Definition
}

// Job is everything that an engine needs to run a machine. A machine in the background gets it from
// the process that starts it.
type Job struct {
	Directories Directories
	Config      runnerconfig.Config
	Host        qemucmd.Host
	// Template is the text of a custom machine type.
	Template string
	// Manifest and Definition are kept with the machine, as it is run.
	Manifest   []byte
	Definition Definition
	// FreshDisks are the disks whose images may be created anew although the machine has had
	// others.
	FreshDisks []string
	// Secrets are the Secrets' contents for the machine, by name and key.
	Secrets map[string]map[string][]byte
	// Images are the cache's ids of the images of disks, by the names of the disks, and ImageCache
	// is the cache's directory.
	Images     map[string]string
	ImageCache string
	// Untouched is set for a machine of which no start has created anything; see [Untouched].
	Untouched *Untouched
	// Version is the program's, for the state.
	Version string

	// Notes are from the probe of the host.
	Notes []string `json:"-"`
	// NewDisks are the images that the start creates.
	NewDisks []NewDisk `json:"-"`

	host *Host // the one that has prepared it
	// service is the systemd unit that has started it, if any.
	service string
	// Interrupted, if not nil, is called by [Job.Supervise] once signals stop the machine, and
	// reports whether one came before that.
	Interrupted func() bool `json:"-"`

	// first reports that nothing of a machine of that name existed, including remains of a deleted
	// one, and that it was not started otherwise before this job began.
	first bool
}

// NewDisk is a disk image that a start creates.
type NewDisk struct {
	Name, Path string
	// Size is in bytes; 0 is that of Image.
	Size int64
	// Image is its source, without passwords and queries; empty for an empty image. Ephemeral
	// reports that it is removed at the machine's end.
	Image     string
	Ephemeral bool
}

// FullName is the machine's NAMESPACE/NAME.
func (j *Job) FullName() string {
	return FullName(j.Config.Runner.Namespace, j.Config.Runner.VM.Name)
}

// JobOptions are the options of preparing a job.
type JobOptions struct {
	Given Given
	// FreshDisks are the names of disks whose empty images may be created although the machine has
	// had others; see [EmptyDiskError].
	FreshDisks []string
	// Image returns the options of fetching an image, which Prepare does; it may be nil.
	Image func(source string) ImageOptions
	// Probe are the options of examining QEMU.
	Probe hostprobe.Options
	// Version is the program's, for the state.
	Version string
}

func readJob(r io.Reader) (*Job, error) {
	j := &Job{}
	if err := json.NewDecoder(r).Decode(j); err != nil {
		return nil, fmt.Errorf("read what to run: %w", err)
	}
	return j, nil
}
