package machineconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"

	"github.com/vmop/sdk/internal/yamljson"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Options is what the configuration of a runner in a cluster depends on besides the manifest. The
// zero value is that of a machine about which nothing is known yet.
type Options struct {
	// ResetCounter is the number of requested resets; the runner resets its machine when it
	// grows. nil leaves it out.
	ResetCounter *int64
	// GuestResetEnds is true if changes wait for the machine's next start, which a reset by the
	// guest then is.
	GuestResetEnds bool
	// LoginUser is the user whom the guest's agent logs in, of an assignment from a pool. Empty
	// leaves it to spec.vm.display.loggedInUser.
	LoginUser string
	// OpenDisplay admits any client that reaches the port of a SPICE server without a password.
	// Without it such a server is for its own pod only.
	OpenDisplay bool
	// InstanceID is the instance-id that the machine's configuration already has in the cluster,
	// used if the manifest gives none. Empty means that there is no configuration yet; see
	// [ForCluster].
	InstanceID string
	// Origin is the program that created the machine; empty means [OriginVMOP].
	Origin Origin
	// VolumeModes are the modes of existing claims of disks, by name. A claim that is not in it
	// is assumed to be a block device.
	VolumeModes map[string]corev1.PersistentVolumeMode
	// GrowTo is the minimum size of a disk that refers to a claim by name, in bytes; disks of
	// other claims do not grow.
	GrowTo map[string]int64
	// NewDisks are the names of disks that may be new, empty images although the machine has had
	// others.
	NewDisks []string
}

// machineConfig returns the part of a runner's configuration that is the same in a cluster and on
// one host: all but directories, their content, and drives; a VNC server on a socket has neither
// a port nor its socket yet. Keys added by vmop are omitted where they have no effect, so that a
// manifest of VM-Operator gives a file that its runner reads (an accelerator of auto would end up
// on its QEMU's command line).
func machineConfig(vm *spec.VirtualMachine, repository, secrets string, o Options, p *problems) runnerconfig.Config {
	s, m := &vm.Spec, &vm.Spec.VM
	if vm.Name == "" {
		p.add("metadata.name", "%s", spec.NameMissing)
	}
	c := runnerconfig.Config{Runner: runnerconfig.Runner{
		Template:           s.RunnerTemplate.Source,
		UpdateTemplate:     *s.RunnerTemplate.Update,
		GuestShutdownStops: s.GuestShutdownIsFinal(),
		CloudInit:          cloudInit(vm, o.InstanceID, secrets, p),
		Sysprep:            sysprep(vm, secrets),
	}}
	if o.ResetCounter != nil {
		c.Runner.ResetCounter = new(*o.ResetCounter)
	}
	out := &c.Runner.VM
	*out = runnerconfig.VM{
		Name:             vm.Name,
		UUID:             m.MachineUUID,
		UseTPM:           m.UseTPM,
		Firmware:         string(m.Firmware),
		PanicDevice:      string(m.PanicDevice),
		BootMenu:         m.BootMenu,
		PowerdownTimeout: new(s.ShutdownSeconds()),
		CPUModel:         m.CPUModel,
		MaximumRAM:       runnerconfig.Bytes(spec.Bytes(*m.MaximumRAM)),
		MachineType:      m.MachineType,
		RTCBase:          m.RTCBase,
		RTCClock:         string(m.RTCClock),
		KernelBoot:       kernelBoot(m.KernelBoot, repository, p),
		Network:          networkConfig(m.Networks, p),
		Display:          displayConfig(m.Display, o.LoginUser),
	}
	if m.MaximumCPUs != nil {
		out.MaximumCPUs = int(*m.MaximumCPUs)
	}
	if t := m.CPUTopology; t != nil {
		out.Sockets, out.DiesPerSocket = int(t.Sockets), int(t.DiesPerSocket)
		out.CoresPerDie, out.ThreadsPerCore = int(t.CoresPerDie), int(t.ThreadsPerCore)
	}
	if m.CurrentCPUs != nil {
		out.CurrentCPUs = int(*m.CurrentCPUs)
	}
	if m.CurrentRAM != nil {
		out.CurrentRAM = runnerconfig.Bytes(spec.Bytes(*m.CurrentRAM))
	}
	if m.Accelerator != spec.AcceleratorAuto {
		out.Accelerator = string(m.Accelerator)
	}
	if !*m.Serial.Enabled {
		out.Serial = new(false)
	}
	return c
}

// cloudInit returns the documents for cloud-init; secrets is the directory of those not in the
// manifest.
func cloudInit(vm *spec.VirtualMachine, instance, secrets string, p *problems) *runnerconfig.CloudInit {
	if !vm.Spec.HasSeed() {
		return nil
	}
	// Meta-data take precedence; see [ForCluster].
	meta := map[string]string{manifest.InstanceIDKey: cmp.Or(instance, manifest.InstanceID(vm)), "local-hostname": vm.Name}
	out := &runnerconfig.CloudInit{MetaData: meta}
	if ci := vm.Spec.CloudInit; ci != nil {
		maps.Copy(meta, ci.MetaData)
		out.UserData = document("spec.cloudInit.userData", ci.UserData, p)
		out.NetworkConfig = document("spec.cloudInit.networkConfig", ci.NetworkConfig, p)
	} else if secrets == "" {
		out.UserDataText = vm.Spec.Provisioning.UserData
	}
	out.MetaDataFrom, out.UserDataFrom, out.NetworkConfigFrom = cloudInitSources(vm, secrets)
	if out.UserData == nil && out.UserDataFrom == nil && out.UserDataText == "" {
		out.UserData = json.RawMessage("{}")
	}
	if out.UserData != nil {
		out.UserData = withMounts(out.UserData, vm.Spec.VM.Shares)
	}
	return out
}

// cloudInitSources returns where the runner has the documents that are not in the manifest: files
// of dir, if that is not empty.
func cloudInitSources(vm *spec.VirtualMachine, dir string) (meta, user, network *runnerconfig.CloudInitSource) {
	if c := vm.Spec.CloudInit; c != nil {
		source := func(s *spec.CloudInitSource, key, file string) *runnerconfig.CloudInitSource {
			if s == nil {
				return nil
			}
			return secretSource(s.SecretRef.Name, cmp.Or(s.SecretRef.Key, key), "", dir, cloudInitDir, file)
		}
		return source(c.MetaDataFrom, "metaData", "meta-data"), source(c.UserDataFrom, "userData", "user-data"),
			source(c.NetworkConfigFrom, "networkConfig", "network-config")
	}
	if ref := vm.Spec.Provisioning.Secret(); ref != nil && vm.Spec.HasSeed() {
		user = secretSource(ref.Name, "userData", "userdata", dir, cloudInitDir, "user-data")
		user.AnyForm = true
	} else if dir != "" && vm.Spec.InlineUserData() != "" {
		// A user who may read ConfigMaps need not have the right to read it.
		user = secretSource(spec.UserDataSecret(vm.Name), spec.UserDataKey, "", dir, cloudInitDir, "user-data")
		user.AnyForm = true
	}
	return nil, user, nil
}

func sysprep(vm *spec.VirtualMachine, secrets string) *runnerconfig.Sysprep {
	ref := vm.Spec.Provisioning.Secret()
	if ref == nil || !vm.Spec.HasAnswerCD() {
		return nil
	}
	return &runnerconfig.Sysprep{
		Unattend:     secretSource(ref.Name, "unattend.xml", "Unattend.xml", secrets, sysprepDir, "unattend.xml"),
		Autounattend: secretSource(ref.Name, "autounattend.xml", "Autounattend.xml", secrets, sysprepDir, "autounattend.xml"),
	}
}

// secretSource returns a document that a Secret has under one of two keys, of which the second
// may be empty, and that a pod has in a file below dir. Each key has a file name of its own:
// Kubernetes refuses a volume with two of the same name.
func secretSource(secret, key, other, dir, sub, file string) *runnerconfig.CloudInitSource {
	out := &runnerconfig.CloudInitSource{Secret: secret, Key: key, OtherKey: other}
	if dir != "" {
		out.File = path.Join(dir, sub, file)
		if other != "" {
			out.OtherFile = out.File + ".other"
		}
	}
	return out
}

// SecretSources returns the documents of a machine that are in Secrets, with the files in
// [ConfigDir] in which its pod has them.
func SecretSources(vm *spec.VirtualMachine) []runnerconfig.CloudInitSource {
	if vm == nil {
		return nil
	}
	var out []runnerconfig.CloudInitSource
	meta, user, network := cloudInitSources(vm, ConfigDir)
	all := []*runnerconfig.CloudInitSource{meta, user, network}
	for _, s := range sysprep(vm, ConfigDir).Sources() {
		all = append(all, *s)
	}
	for _, s := range all {
		if s != nil {
			out = append(out, *s)
		}
	}
	return out
}

// document returns a free-form object of the manifest in canonical form: order and numbers as
// written, strings escaped no more than needed; nil if there is none.
func document(field string, r *runtime.RawExtension, p *problems) json.RawMessage {
	raw, err := manifest.RawJSON(r)
	if err != nil {
		p.add(field, "%v", err)
		return nil
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if raw[0] != '{' {
		p.add(field, "must be an object")
		return nil
	}
	if raw, err = yamljson.Canonical(raw); err != nil {
		p.add(field, "%v", err)
		return nil
	}
	return raw
}

func kernelBoot(k *spec.KernelBoot, repository string, p *problems) *runnerconfig.KernelBoot {
	if k == nil {
		return nil
	}
	locate := func(field, name string) string {
		file, err := imageLocation(name, repository, false)
		if err != nil {
			p.add("spec.vm.kernelBoot."+field, "%v", err)
		}
		return file
	}
	return &runnerconfig.KernelBoot{
		Kernel: locate("kernel", k.Kernel),
		Initrd: locate("initrd", k.Initrd),
		Args:   k.Args,
	}
}

// networkConfig returns nil for no networks, which VM-Operator writes as null.
func networkConfig(networks []spec.Network, p *problems) []runnerconfig.Network {
	var out []runnerconfig.Network
	for i, n := range networks {
		switch {
		case (n.User != nil) == (n.Tap != nil):
			p.add(fmt.Sprintf("spec.vm.networks[%d]", i), "want exactly one of tap and user")
		case n.User != nil:
			u := runnerconfig.Network{Type: runnerconfig.NetworkUser, Device: n.User.Device, MAC: n.User.MAC, Net: n.User.Net}
			for _, h := range n.User.HostForwards {
				u.HostForwards = append(u.HostForwards, runnerconfig.HostForward{
					Protocol: string(h.Protocol), HostAddress: h.HostAddress,
					HostPort: int(h.HostPort), GuestPort: int(h.GuestPort),
				})
			}
			out = append(out, u)
		case n.Tap != nil:
			out = append(out, runnerconfig.Network{Type: runnerconfig.NetworkTap, Device: n.Tap.Device, Bridge: n.Tap.Bridge, MAC: n.Tap.MAC})
		}
	}
	return out
}
