package runner

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/testnet"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// Two machines on a bridge reach each other and the host, with frames of the
// bridge's size, and leave nothing behind. One was made its interface beforehand,
// as in a pod.
func TestTapNetworks(t *testing.T) {
	guest := guestWith(t, "netguest", "../../internal/netguest")
	if !testnet.Inside(t) {
		return
	}
	const size = 1400
	testnet.Bridge(t, "br7", size, "10.77.0.1")
	const prepared = "0:vm0123456789-0:br7:2"
	if err := PrepareTaps(prepared, os.Getuid()); err != nil {
		t.Fatal(err)
	}
	machine := func(n int, change func(*Options)) (*running, func(string) string) {
		c := testConfig(t)
		c.Runner.VM.KernelBoot.Initrd = guest.Initrd
		c.Runner.VM.MaximumCPUs = 2
		c.Runner.VM.Network = []runnerconfig.Network{{Type: "tap", Bridge: "br7", MAC: fmt.Sprintf("52:54:00:00:00:0%d", n)}}
		d := testDirs(t)
		r := start(t, c, d, change)
		t.Cleanup(func() { nothingLeft(t, d) })
		console := r.console(t)
		say := func(args string) string {
			t.Helper()
			if err := console.Send("exec /bin/netguest " + args); err != nil {
				t.Fatal(err)
			}
			var said [2]string
			for i, end := range []string{"netguest: ", "\n"} {
				var err error
				if said[i], err = console.Expect(withPatience(t), end); err != nil {
					t.Fatal(err)
				}
			}
			if !strings.HasPrefix(said[1], "done") {
				t.Errorf("netguest %s: %s", args, said[1])
			}
			return said[0]
		}
		say(fmt.Sprintf("address eth0 10.77.0.1%d", n))
		return r, say
	}
	taps, err := OpenTaps(prepared)
	if err != nil {
		t.Fatal(err)
	}
	first, one := machine(1, func(o *Options) { o.Taps = taps })
	second, two := machine(2, func(*Options) {})
	t.Logf("the interfaces of the host: %v", testnet.Interfaces(t))
	for n, say := range map[int]func(string) string{1: one, 2: two} {
		if got, want := say("mtu eth0"), fmt.Sprintf("mtu %d mac 52:54:00:00:00:0%d", size, n); !strings.Contains(got, want) {
			t.Errorf("the guest's interface: %s, want %s", got, want)
		}
		for _, address := range []string{"10.77.0.1", fmt.Sprintf("10.77.0.1%d", 3-n)} {
			say(fmt.Sprintf("reach %s %d", address, size-28)) // less the headers of IP and UDP
		}
	}
	// A port of a bridge whose address is lower would become the bridge's own.
	for _, name := range testnet.Interfaces(t) {
		if i, err := net.InterfaceByName(name); err != nil || i.MTU != size || i.HardwareAddr[0] != 0xfe {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
	// However QEMU ends.
	if p, err := os.FindProcess(first.State().QEMUPID); err != nil || p.Kill() != nil {
		t.Error("kill QEMU")
	}
	second.Stop()
	first.wait(t)
	second.wait(t)
	for deadline := time.Now().Add(patience); len(testnet.Interfaces(t)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("left behind: %v", testnet.Interfaces(t))
		}
	}
}

// What keeps a tap interface from being made is said with what helps.
func TestTapNetworkThatCannotBe(t *testing.T) {
	if !testnet.Inside(t) {
		return
	}
	c := testConfig(t)
	c.Runner.VM.Network = []runnerconfig.Network{{Type: "tap", Bridge: "br9"}}
	r := start(t, c, testDirs(t))
	if _, err := r.wait(t); err == nil || !strings.Contains(err.Error(), "vm.network[0]: bridge: interface br9: no such device: name a bridge that is there") {
		t.Error(err)
	}
	missing := filepath.Join(t.TempDir(), "helper")
	e := &Engine{}
	e.o.Host.BridgeHelper = missing
	testnet.Bridge(t, "br9", 1500, "")
	if err := dropCapabilities(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.newTap(t.Context(), "br9", 1); err == nil || !strings.Contains(err.Error(), "chmod u+s "+missing) || !strings.Contains(err.Error(), `"allow br9"`) {
		t.Error(err)
	}
}

// dropCapabilities takes all capabilities from this goroutine, which keeps its
// thread to itself.
func dropCapabilities() error {
	runtime.LockOSThread()
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}
