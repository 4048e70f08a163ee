package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// startedMachines is how many generated manifests one test run starts.
const startedMachines = 10

// Every valid manifest becomes a machine that QEMU starts.
func TestEveryValidManifestStarts(t *testing.T) {
	host, guest := testHost(t), testGuest(t)
	started := 0
	rapid.Check(t, func(rt *rapid.T) {
		if started == startedMachines {
			return // rapid wants to draw more often than a QEMU should be started
		}
		vm := spectest.OneHost().Draw(rt, "machine")
		vm.Spec.VirtualMachineClassName = "" // which one host has none of
		started++
		dirs := testDirs(t)
		files := filepath.Join(filepath.Dir(dirs.Data), "files")
		overrides := map[string]string{}
		for _, d := range machineconfig.Disks(vm) {
			if !d.IsCD() {
				overrides[d.Name] = filepath.Join(files, d.Name+".img")
				makeFile(rt, overrides[d.Name])
			}
		}
		var folders []machineconfig.LocalShare
		for i, s := range vm.Spec.VM.Shares {
			folder := filepath.Join(files, fmt.Sprint("folder, ", i))
			if err := os.MkdirAll(folder, 0o700); err != nil {
				rt.Fatal(err)
			}
			folders = append(folders, machineconfig.LocalShare{Tag: s.Tag, Dir: folder})
		}
		c, err := machineconfig.ForHost(vm, machineconfig.Host{
			DataDir: dirs.Data, RuntimeDir: dirs.Runtime, ImageRepository: files, Disks: overrides, Shares: folders, Accelerator: "tcg",
		})
		if err != nil {
			rt.Fatal(err)
		}
		runnerconfig.Default(&c)
		fitToHost(rt, &c, files, guest.Kernel, guest.Initrd)
		e, err := New(Options{Config: c, Host: host, Directories: dirs, Secrets: secretsOf(&c)})
		if err != nil {
			rt.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		e.o.Reporter = &stopWhenRunning{cancel: cancel}
		if o, err := e.Run(ctx); o.Cause != CauseForced {
			rt.Fatalf("%+v, %v\nconfiguration: %+v", o, err, c)
		}
		nothingLeft(t, dirs)
	})
	if started != startedMachines {
		t.Errorf("started %d machines, want %d", started, startedMachines)
	}
}

// stopWhenRunning ends a machine as soon as its guest may execute.
type stopWhenRunning struct{ cancel context.CancelFunc }

func (s *stopWhenRunning) State(st State) {
	if st.Phase == PhaseBooting {
		s.cancel()
	}
}

func (s *stopWhenRunning) Message(Message) {}

// fitToHost replaces what a test host does not have: bridges, much memory, CPUs,
// virtiofsd, certain ports, servers on the net, and files at absolute paths. What a string
// looks like stays.
func fitToHost(t *rapid.T, c *runnerconfig.Config, files, kernel, initrd string) {
	c.Runner.Template = ""
	vm := &c.Runner.VM
	vm.MaximumRAM = min(vm.MaximumRAM, 1<<30)
	vm.CurrentRAM = min(vm.CurrentRAM, vm.MaximumRAM)
	fewCPUs(vm)
	vm.CPUModel = "max" // names are drawn that no QEMU has
	for i := range vm.Network {
		n := &vm.Network[i]
		n.Type, n.Bridge, n.HostForwards = runnerconfig.NetworkUser, "", nil
		if slices.Contains([]string{"igb", "sungem"}, n.Device) { // not in every QEMU for PCs
			n.Device = "e1000e"
		}
	}
	for i := range vm.Shares {
		vm.Shares[i].Protocol = limits.Share9P // which needs no other program
	}
	for i := range vm.Drives {
		d := &vm.Drives[i]
		if d.Type == runnerconfig.DriveCD && d.File != "" {
			d.File = filepath.Join(files, fmt.Sprint("cd", i), filepath.Base(d.File))
			makeFile(t, d.File)
		}
	}
	if k := vm.KernelBoot; k != nil {
		k.Kernel, k.Initrd = link(t, files, k.Kernel, kernel), link(t, files, k.Initrd, initrd)
	}
}

// secretsOf are the documents of Secrets that a configuration names.
func secretsOf(c *runnerconfig.Config) map[string]map[string][]byte {
	secrets := map[string]map[string][]byte{}
	for _, s := range c.Runner.Sources() {
		if secrets[(*s).Secret] == nil {
			secrets[(*s).Secret] = map[string][]byte{}
		}
		secrets[(*s).Secret][(*s).Key] = []byte("#cloud-config\n{}\n") // which each of the documents may be
	}
	return secrets
}

// fewCPUs leaves a machine no more than QEMU's machine types have, and a test host
// can start.
func fewCPUs(vm *runnerconfig.VM) {
	most := 16
	if vm.Sockets > 0 {
		vm.Sockets, vm.DiesPerSocket, vm.CoresPerDie, vm.ThreadsPerCore = 2, 1, 1, 1
		most = 2
		vm.MaximumCPUs = min(vm.MaximumCPUs, 1) * most // if it is given
	}
	vm.MaximumCPUs = min(vm.MaximumCPUs, most)
	vm.CurrentCPUs = min(vm.CurrentCPUs, most, max(vm.MaximumCPUs, vm.Sockets))
}

func link(t *rapid.T, dir, name, target string) string {
	if name == "" {
		return ""
	}
	path := filepath.Join(dir, filepath.Base(target)+" "+filepath.Base(name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return path
}

func makeFile(t *rapid.T, path string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
}
