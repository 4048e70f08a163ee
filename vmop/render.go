package vmop

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/cloudinit"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// ErrTemplate means that a machine has a template of its own, which [RenderOptions] must contain.
var ErrTemplate = errors.New("the machine has a template of its own: its text is needed to render it")

// Template builds the command line of a machine; see [qemucmd.Template].
type Template = func(qemucmd.Machine, qemucmd.Host) (qemucmd.Command, error)

// RenderOptions are optional inputs of [Render]. The zero value renders a machine as a cluster
// would run it for the first time.
type RenderOptions struct {
	// Host is the QEMU that the command line is for; nil means [qemucmd.GenericHost]. Package
	// hostprobe probes a real one.
	Host *qemucmd.Host
	// Local renders the machine for one host without a cluster; nil renders it for a cluster.
	Local *Local
	// Settings are the operator's, for the objects in a cluster. The zero value is VM-Operator's
	// default, not the one that vmop's operator is deployed with.
	Settings Settings
	// UUID and MachineType are those that the runner recorded at the machine's first start. They
	// are used if the manifest has none.
	UUID        string
	MachineType string
	// AddressMap is the recorded map of PCI addresses. 0 is that of a machine that has never run.
	AddressMap int
	// Template builds the command line of a machine that has a template of its own, see
	// [qemucmd.Template]. It is a function rather than a text, because programs that link
	// text/template are megabytes larger.
	Template Template
	// Drives are the facts about the files of the configuration's drives, in their order. nil
	// guesses by the paths: below /dev is a block device, *.qcow2 is an image in that format, all
	// else is a raw image.
	Drives []runnerconfig.DriveFacts
}

// Rendered is the result of rendering a manifest.
type Rendered struct {
	// Command is the QEMU command line with the files, sockets and helpers that it needs.
	Command qemucmd.Command `json:"command"`
	// Config is the runner's configuration, as it is written to its file.
	Config runnerconfig.Config `json:"config"`
	// CloudInit holds the documents of the NoCloud seed; nil if the machine has none.
	CloudInit *cloudinit.Documents `json:"cloudInit,omitempty"`
	// Objects are the Kubernetes objects, in the order in which they must be created; none if the
	// machine is rendered for one host.
	Objects []reconcile.Object `json:"objects,omitempty"`
	// Assumptions are sentences about parts of the command line that may differ for a real machine.
	Assumptions []string `json:"assumptions,omitempty"`
}

// Render renders everything that is needed to run a manifest. The error has every problem of the
// first step that finds any.
//
// A machine has a UUID, and MAC addresses that follow from it, since its first start. Without
// RenderOptions.UUID the result shows one derived from the machine's name, which the assumptions
// mention.
func Render(vm *VirtualMachine, o RenderOptions) (Rendered, error) {
	if vm == nil {
		return Rendered{}, errNilMachine
	}
	var out Rendered
	facts := runnerconfig.Facts{UUID: o.UUID, MachineType: o.MachineType, AddressMap: o.AddressMap, Drives: o.Drives}
	var err error
	if o.Local != nil {
		out.Config, err = machineconfig.ForHost(vm, *o.Local)
		facts.DataDir, facts.RuntimeDir = o.Local.DataDir, o.Local.RuntimeDir
		facts.DisplayPassword = o.Local.DisplayPassword
	} else {
		out.Config, out.Objects, err = machine.Render(vm, o.Settings)
		facts.DataDir, facts.RuntimeDir = machineconfig.DataDir, machineconfig.RuntimeDir(vm.Name)
		facts.DisplayPassword = hasSecret(out.Objects)
	}
	if err != nil {
		return Rendered{}, err
	}
	if o.Local == nil && facts.DisplayPassword {
		out.assume("the display secret has no password, which the operator makes: whoever applies these objects by hand adds one as the key %s, for which the pod waits", names.PasswordKey)
	}
	config := runnerconfig.Defaulted(out.Config) // as the runner completes the file
	if err := runnerconfig.Validate(&config); err != nil {
		return Rendered{}, fmt.Errorf("%s: %w", vm.Title(), err)
	}
	if facts.AddressMap == 0 {
		facts.AddressMap = qemucmd.AddressMapFor(config.Runner.VM.Disks())
	}
	if config.Runner.VM.UUID == "" && facts.UUID == "" {
		facts.UUID = exampleUUID(vm)
		out.assume("the UUID %s stands for the one that the runner makes at the first start, and MAC addresses that the manifest does not give follow from it", facts.UUID)
	}
	if facts.Drives == nil {
		facts.Drives = guessDrives(config.Runner.VM.Drives)
	}
	host := o.Host
	if host == nil {
		generic := qemucmd.GenericHost()
		host = &generic
		out.assume("the host is a generic one with QEMU %s and KVM", host.Version)
	}
	if out.Command, err = command(&config, facts, *host, o.Template); err != nil {
		return Rendered{}, fmt.Errorf("%s: %w", vm.Title(), err)
	}
	if ci := config.Runner.CloudInit; ci != nil {
		text := fromSecret(ci.UserDataFrom)
		inline := vm.Spec.InlineUserData()
		if inline != "" {
			text = []byte(inline)
		}
		docs, err := cloudinit.Render(cloudinit.Input{
			MetaData: ci.MetaData, MetaDataValues: ci.MetaDataValues, UserData: ci.UserData, NetworkConfig: ci.NetworkConfig,
			UserDataText: text, NetworkConfigText: fromSecret(ci.NetworkConfigFrom),
			AnyUserData: inline != "",
		})
		if err != nil {
			return Rendered{}, fmt.Errorf("%s: spec.cloudInit: %w", vm.Title(), err)
		}
		if s := ci.MetaDataFrom; s != nil {
			docs.MetaData = fmt.Appendf(docs.MetaData, "# and the key %s of the Secret %s, which only the runner reads\n", s.Key, s.Secret)
		}
		out.CloudInit = &docs
	}
	return out, nil
}

// fromSecret returns a placeholder for a document that only the runner reads; nil if s is nil.
func fromSecret(s *runnerconfig.CloudInitSource) []byte {
	if s == nil {
		return nil
	}
	return fmt.Appendf(nil, "# The key %s of the Secret %s, which only the runner reads.\n{}\n", s.Key, s.Secret)
}

func hasSecret(objects []reconcile.Object) bool {
	return slices.ContainsFunc(objects, func(o reconcile.Object) bool {
		return o.GetLabels()[names.LabelComponent] == names.ComponentDisplaySecret
	})
}

func (r *Rendered) assume(format string, args ...any) {
	r.Assumptions = append(r.Assumptions, fmt.Sprintf(format, args...))
}

func command(c *runnerconfig.Config, f runnerconfig.Facts, h qemucmd.Host, template Template) (qemucmd.Command, error) {
	machine, err := runnerconfig.Machine(c, f)
	if err != nil {
		return qemucmd.Command{}, err
	}
	name := c.Runner.Template
	if qemucmd.IsStandardTemplate(name) {
		return qemucmd.Build(machine, h)
	}
	if err := qemucmd.CheckTemplateName(name); err != nil {
		return qemucmd.Command{}, err
	}
	if template == nil {
		return qemucmd.Command{}, fmt.Errorf("spec.runnerTemplate.source %q: %w", name, ErrTemplate)
	}
	return template(machine, h)
}

func guessDrives(drives []runnerconfig.Drive) []runnerconfig.DriveFacts {
	out := make([]runnerconfig.DriveFacts, len(drives))
	for i := range drives {
		where := drives[i].Where()
		switch {
		case drives[i].Type == runnerconfig.DriveCD:
		case strings.HasPrefix(where, "/dev/"):
			out[i].Device = true
		case strings.HasSuffix(where, ".qcow2"):
			out[i].Format = qemucmd.DiskFormatQCOW2
		}
	}
	return out
}

// exampleUUID returns a UUID of version 8 (custom, RFC 9562) that depends on the machine's name
// only.
func exampleUUID(vm *VirtualMachine) string {
	sum := sha256.Sum256([]byte("vmop example UUID\x00" + vm.Namespace + "\x00" + vm.Name))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
