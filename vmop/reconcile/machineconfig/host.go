package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// Host is where a machine on one host, without a cluster, has its files. Other hosts can reach
// none of it unless the manifest asks for it: port forwards without a hostAddress are on the
// loopback interface.
//
// All paths should be absolute: nothing is resolved here, and the caller decides what a relative
// path means.
type Host struct {
	// DataDir keeps persistent data: disks, firmware variables, TPM state.
	DataDir string
	// RuntimeDir keeps sockets while the machine runs.
	RuntimeDir string
	// ImageRepository is the directory of CD images and kernels that the manifest names by
	// relative paths. It may be empty if there are none.
	ImageRepository string
	// Disks maps the names of disks to existing files or block devices. A name is that of [Disk],
	// the metadata.name of a volumeClaimTemplate or a claimName. A disk from a template that is
	// not in it is an image in DataDir, created at the first start.
	Disks map[string]string
	// ShareBase is the folder that hostPaths of shares and the files of images are relative to:
	// that of the manifest. It may be empty if none is relative.
	ShareBase string
	// Shares are folders beside those of the manifest, and those of its claims.
	Shares []LocalShare
	// ExplicitPorts are the protocols of displays whose port the manifest itself names, which the
	// defaults hide; see [ExplicitPorts]. The server of any other is on a socket in RuntimeDir
	// that no other user can open. A port of WebSockets is always explicit.
	ExplicitPorts []string
	// DisplayPassword is true if the display has a password. Without one, an explicit port is
	// served on the loopback interface only.
	DisplayPassword bool
	// Accelerator overrides that of the manifest, if not empty.
	Accelerator spec.Accelerator
}

// ForHost returns the configuration of a runner that runs the machine on one host, including its
// directories: runner.New takes it as it is. It describes the same machine as [ForCluster], with
// other paths. The error names everything that the host would have to provide, as [*Error].
func ForHost(vm *spec.VirtualMachine, l Host) (runnerconfig.Config, error) {
	if vm == nil {
		return runnerconfig.Config{}, errNoMachine
	}
	vm = manifest.Defaulted(vm)
	if l.Accelerator != "" {
		vm.Spec.VM.Accelerator = l.Accelerator
	}
	vm.Spec.VM.Shares = withLocal(vm.Spec.VM.Shares, l.Shares)
	var p problems
	if name := vm.Spec.VirtualMachineClassName; name != "" {
		p.add("spec.virtualMachineClassName", "names the class %s, and on one host there is none: put its manifest, VirtualMachineClass %s, into the same file", name, name)
	}
	if l.DataDir == "" {
		p.add("local.dataDir", "is missing")
	}
	if l.RuntimeDir == "" {
		p.add("local.runtimeDir", "is missing")
	}
	c := machineConfig(vm, l.ImageRepository, "", Options{}, &p)
	c.Runner.DataDir, c.Runner.RuntimeDir = l.DataDir, l.RuntimeDir
	for _, n := range c.Runner.VM.Network {
		for i := range n.HostForwards {
			setString(&n.HostForwards[i].HostAddress, "127.0.0.1")
		}
	}
	for _, u := range vm.Spec.VM.USBDevices {
		c.Runner.VM.USBDevices = append(c.Runner.VM.USBDevices, runnerconfig.USBDevice{Vendor: strings.ToLower(u.Vendor), Product: strings.ToLower(u.Product)})
	}
	c.Runner.VM.Shares = localShares(vm.Spec.VM.Shares, l.ShareBase, &p)
	disks := Disks(vm)
	paths := diskOverrides(disks, l.Disks, &p)
	for i := range disks {
		d := &disks[i]
		d.check(&p)
		if d.IsCD() {
			c.Runner.VM.Drives = append(c.Runner.VM.Drives, cdDrive(d, l.ImageRepository, &p))
			continue
		}
		c.Runner.VM.Drives = append(c.Runner.VM.Drives, localDrive(d, paths[i], &l, &p))
	}
	hostDisplay(&c, vm, &l)
	if err := errors.Join(p...); err != nil {
		return runnerconfig.Config{}, fmt.Errorf("%s: %w", vm.Title(), err)
	}
	return c, nil
}

// localDrive returns the drive of a disk that is no CD drive. An override must exist: creating an
// empty disk for a mistyped name would be worse than failing.
func localDrive(d *Disk, override string, l *Host, p *problems) runnerconfig.Drive {
	drive := runnerconfig.Drive{Type: runnerconfig.DriveRaw, Name: d.Name, BootIndex: intPointer(d.Entry.Bootindex)}
	drive.ReadOnly = d.IsImage()
	if override != "" {
		drive.Resource = override
		return drive
	}
	drive.File = path.Join(l.DataDir, d.Name+".img")
	drive.Size = requestedSize(d)
	drive.Image = d.image(l.ShareBase, true, p)
	if drive.Ephemeral() {
		// Another file, so that a persistent disk is never recreated as an ephemeral one.
		drive.File = path.Join(l.DataDir, d.Name+".ephemeral.img")
	}
	switch t := d.Entry.VolumeClaimTemplate; {
	case d.Ref != nil:
		p.add(d.Field(), "the %s %q exists in a cluster only: say which file or device it is here, %s=PATH", d.Ref.Kind, d.Ref.Name, d.Ref.Name)
	case d.Entry.PersistentVolumeClaim != nil:
		p.add(d.Field()+".persistentVolumeClaim", "the claim %q exists in a cluster only: say which file or device it is here, %s=PATH", d.Claim, d.Name)
	case t == nil: // an image, or an invalid entry, which is reported
	case t.Spec.DataSource != nil || t.Spec.DataSourceRef != nil:
		p.add(d.Field()+".volumeClaimTemplate.spec", "its data source exists in a cluster only: say which file or device has the content here, %s=PATH", d.Name)
	case drive.Size <= 0:
		p.add(d.Field()+".volumeClaimTemplate.spec.resources.requests.storage", "is missing: add the size of the disk to the manifest, such as 10Gi, or name an existing image, %s=PATH", d.Name)
	}
	return drive
}

func diskOverrides(disks []Disk, given map[string]string, p *problems) map[int]string {
	out := map[int]string{}
	from := map[int]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		found := findDisk(disks, name)
		switch {
		case len(found) == 0:
			p.add("local.disks", "there is no disk %q: the machine has %s", name, diskList(disks))
		case len(found) > 1:
			p.add("local.disks", "%q could be %s or %s: use one of these names", name, disks[found[0]].Name, disks[found[1]].Name)
		case given[name] == "":
			p.add("local.disks", "the path of %q is empty", name)
		case from[found[0]] != "":
			p.add("local.disks", "%q and %q are the same disk: give one of them", from[found[0]], name)
		default:
			out[found[0]], from[found[0]] = given[name], name
		}
	}
	return out
}

// findDisk returns the positions of the disks that a name may mean. A disk's own name takes
// precedence over other disks' names in the manifest.
func findDisk(disks []Disk, name string) []int {
	var exact, alias []int
	for i := range disks {
		d := &disks[i]
		switch {
		case d.IsCD() || name == "":
		case d.Name == name:
			exact = append(exact, i)
		case stemOf(d) == name,
			d.Entry.PersistentVolumeClaim != nil && d.Claim == name:
			alias = append(alias, i)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return alias
}

// stemOf returns the manifest's name of a disk that the machine creates, or refers to.
func stemOf(d *Disk) string {
	if d.Ref != nil {
		return d.Ref.Name
	}
	if c := d.Entry.ContainerDisk; c != nil {
		return c.Name
	}
	if t := d.Entry.Template(); t != nil {
		return t.Metadata.Name
	}
	return ""
}

func diskList(disks []Disk) string {
	var names []string
	for i := range disks {
		if n := disks[i].Name; n != "" {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// hostDisplay sets where the display of a machine on one host listens. The default ports of
// manifests are those of pods; on a host other programs may use them.
func hostDisplay(c *runnerconfig.Config, vm *spec.VirtualMachine, l *Host) {
	d := c.Runner.VM.Display
	for _, s := range d.Servers() {
		if !slices.Contains(l.ExplicitPorts, string(s.Protocol)) || wantsSocket(s) {
			s.MoveToSocket(socketIn(l.RuntimeDir, s.Protocol))
		}
	}
	for _, s := range d.Servers() { // with the remaining ports
		// What was to be encrypted stays on the host: there are no Secrets with certificates.
		if len(s.Ports) > 0 && (!l.DisplayPassword || vm.Spec.VM.Display.TLS != nil) {
			s.ListenOn("127.0.0.1")
		}
	}
}
