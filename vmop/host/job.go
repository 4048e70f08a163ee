package host

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Untouched is what there was of a machine before the first start that makes something of
// it: UUID, record, UEFI variables, disks. A start that does not come to execute the guest
// leaves no more than that, what was given for it, its log and its state.
type Untouched struct {
	// Files are the names of all that was in the machine's directory.
	Files []string
	// Record is the content of machine.json, nil if there was none.
	Record []byte
	// Definition is what was kept of the machine.
	Definition Definition
}

// Job is everything that an engine needs to run a machine. A machine in the
// background gets it from the process that starts it.
type Job struct {
	Directories Directories
	Config      runnerconfig.Config
	Host        qemucmd.Host
	// Template is the text of a custom machine type.
	Template string
	// Manifest and Definition are kept with the machine, as it is run.
	Manifest   []byte
	Definition Definition
	// FreshDisks are the disks whose images may be made anew although the machine
	// has had others.
	FreshDisks []string
	// Secrets are what the machine gets of Secrets, by their names and keys.
	Secrets map[string]map[string][]byte
	// Images are what the cache calls the images that disks are made of, by the names of
	// the disks, and ImageCache is the directory of that.
	Images     map[string]string
	ImageCache string
	// Untouched is what there was of a machine that no start has made anything of; see
	// [Untouched]. It is nil of others.
	Untouched *Untouched
	// Version of the program, for the state.
	Version string

	// Notes are what the probe of the host has to say.
	Notes []string `json:"-"`
	// NewDisks are the images that the start makes.
	NewDisks []NewDisk `json:"-"`

	host *Host // that has prepared it
	// service is the unit of systemd that has started it, if one has.
	service string
	// Interrupted, if not nil, is asked by [Job.Supervise] once signals stop the machine:
	// whether one came before that.
	Interrupted func() bool `json:"-"`

	// first says that there was nothing of a machine of that name, and nothing that a
	// deleted one has left, and that nobody else has started it before this job began.
	first bool
}

// NewDisk is a disk image that a start makes.
type NewDisk struct {
	Name, Path string
	// Size in bytes; 0 is that of Image.
	Size int64
	// Image is what it is a copy of, without passwords and queries; an image without
	// is empty. Ephemeral says that it is removed at the machine's end.
	Image     string
	Ephemeral bool
}

// FullName is the machine's NAMESPACE/NAME.
func (j *Job) FullName() string {
	return FullName(j.Config.Runner.Namespace, j.Config.Runner.VM.Name)
}

// JobOptions say how a job is prepared.
type JobOptions struct {
	Given Given
	// FreshDisks are the names of disks whose empty images may be made although the
	// machine has had others; see [EmptyDiskError].
	FreshDisks []string
	// Image says who is told how the image of a disk is fetched, which Prepare does;
	// nil tells nobody.
	Image func(source string) ImageOptions
	// Probe says how QEMU is asked what it offers.
	Probe hostprobe.Options
	// Version of the program, for the state.
	Version string
}

// readJob reads the job that the calling process wrote.
func readJob(r io.Reader) (*Job, error) {
	j := &Job{}
	if err := json.NewDecoder(r).Decode(j); err != nil {
		return nil, fmt.Errorf("read what to run: %w", err)
	}
	return j, nil
}
