package runner

import (
	"context"
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/runnerconfig"
)

// An address that replaces another tells the host nothing. It is learned at the
// next sign of life, such as the guest's writing its clock, which Linux does every
// eleven minutes where NTP sets the time.
func TestAddressChangesSilently(t *testing.T) {
	t.Parallel()
	guest := guestWith(t, "netguest", "../../internal/netguest")
	d := testDirs(t)
	c := testConfig(t)
	vm := &c.Runner.VM
	vm.MaximumRAM = 192 << 20
	vm.KernelBoot.Kernel, vm.KernelBoot.Initrd = guest.Kernel, guest.Initrd
	vm.KernelBoot.Args += " ipv6.disable=1" // whose addresses would be told of, see TestDebianGuest
	vm.Network = []runnerconfig.Network{{Type: runnerconfig.NetworkUser, MAC: "52:54:00:12:34:98"}}
	runnerconfig.Default(&c)
	r := start(t, c, d)
	console := r.console(t)
	send := func(args string) { // not a command: the program's output tears the conversation
		t.Helper()
		if err := console.Send("exec /bin/netguest " + args); err != nil {
			t.Fatal(err)
		}
	}
	netguest := func(args string) {
		t.Helper()
		send(args)
		if _, err := console.Expect(withPatience(t), "netguest: done"); err != nil {
			t.Fatal(err)
		}
	}
	address := func(only string) func(State) bool {
		return func(s State) bool {
			return slices.ContainsFunc(s.Guest.Interfaces, func(i GuestInterface) bool {
				return i.MAC == "52:54:00:12:34:98" && slices.Equal(i.Addresses, []string{only})
			})
		}
	}
	netguest("address eth0 10.0.2.20")
	send("agent")
	r.now(t, "the first address", address("10.0.2.20/8"))

	told := r.tools(t).Subscribe(16, "NIC_RX_FILTER_CHANGED")
	netguest("address eth0 10.0.2.21")
	netguest("clock")
	r.now(t, "the next address", address("10.0.2.21/8"))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if ev, err := told.Next(over); err == nil {
		t.Errorf("the host was told of the address: %s", ev.Name)
	}
	r.cancel()
	r.wait(t)
	nothingLeft(t, d)
}
