package runner

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/debianguest"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qga"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// The real guest agent of a Debian: what it tells is in the state, also the
// address that comes after it, and one that is added later; and others have their
// turn at the agent. cloud-init is left out, which takes longer than all the rest:
// what it makes of a seed is tested where seeds are made, and here that the guest
// finds the seed.
func TestDebianGuest(t *testing.T) {
	t.Parallel() // with others that boot for long
	guest, err := debianguest.Ensure(withPatience(t), debianguest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := testDirs(t)
	disk := filepath.Join(t.TempDir(), "root.img")
	if out, err := exec.Command("cp", "--reflink=auto", "--sparse=always", guest.Disk, disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := testConfig(t)
	vm := &c.Runner.VM
	vm.MaximumRAM, vm.MaximumCPUs, vm.CurrentCPUs = 768<<20, 2, 2
	vm.KernelBoot = &runnerconfig.KernelBoot{Kernel: guest.Kernel, Initrd: guest.Initrd, Args: guest.Append + " systemd.hostname=told-by-agent " + debianguest.WithoutCloudInit}
	vm.Drives = []runnerconfig.Drive{{Type: "raw", Name: "root", File: disk}}
	vm.Network = []runnerconfig.Network{{Type: "user", MAC: "52:54:00:12:34:99"}}
	c.Runner.CloudInit = &runnerconfig.CloudInit{
		MetaData: map[string]string{"instance-id": "runner-1", "local-hostname": "seeded"}, UserData: json.RawMessage(`{}`),
	}
	runnerconfig.Default(&c)
	r := start(t, c, d)
	address := func(a string) func(State) bool {
		return func(s State) bool {
			return slices.ContainsFunc(s.Guest.Interfaces, func(i GuestInterface) bool {
				return i.MAC == "52:54:00:12:34:99" && slices.ContainsFunc(i.Addresses, func(got string) bool { return strings.HasPrefix(got, a) })
			})
		}
	}
	s := r.now(t, "the guest has told its name", func(s State) bool { return s.Guest.HostName != "" })
	var os struct {
		ID      string `json:"id"`
		Version string `json:"version-id"`
	}
	if err := json.Unmarshal(s.Guest.OSInfo, &os); err != nil || os.ID != "debian" || os.Version != "12" {
		t.Errorf("operating system %s, %v", s.Guest.OSInfo, err)
	}
	if s.Guest.HostName != "told-by-agent" || s.Guest.Problem != "" || !has(live.Booted, live.ReasonVMBooted)(s) {
		t.Errorf("%+v, %+v", s.Guest, s.StatusConditions)
	}

	agent, err := qga.Dial(t.Context(), s.Socket(qemucmd.SocketGuestAgent))
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	run := func(line string) string {
		t.Helper()
		status, err := agent.Run(withPatience(t), qga.Program{Path: "/bin/sh", Args: []string{"-ec", line}, Capture: true})
		if err != nil || status.ExitCode != 0 {
			t.Fatalf("%s: %v, %+v %s", line, err, status, status.Stderr)
		}
		return strings.TrimSpace(string(status.Stdout))
	}
	if got := run("mount -o ro -L CIDATA /mnt; cat /mnt/meta-data"); !strings.Contains(got, "local-hostname: seeded") {
		t.Errorf("the guest finds the seed %q", got)
	}
	nic := run("ip -o link | sed -n 's/^[0-9]*: \\(e[^:]*\\):.*/\\1/p'")
	run("dhclient -1 " + nic)
	// The agent is held meanwhile: the question is put once it is free.
	if err := agent.Close(); err != nil {
		t.Error(err)
	}
	r.now(t, "the guest has its address", address("10.0.2."))
	if agent, err = qga.Dial(t.Context(), s.Socket(qemucmd.SocketGuestAgent)); err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	// An address of IPv6 changes the card's filter, which QEMU tells of.
	run("ip -6 address add 2001:db8::7/64 dev " + nic)
	if err := agent.Close(); err != nil {
		t.Error(err)
	}
	r.now(t, "the address that was added", address("2001:db8::7/64"))
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}
