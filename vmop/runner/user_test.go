package runner

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The tables of /proc/net, as a kernel has printed them.
func TestListeners(t *testing.T) {
	const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:EF26 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1500        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:EF27 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 30 10 -1
`
	const tcp6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000000000000000 100 0 0 10 0
   1: 00000000000000000000000001000000:0CEA 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4714 1 0000000000000000 100 0 0 10 0
`
	const udp = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  100: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 4715 2 0000000000000000 0
`
	for _, c := range []struct {
		text string
		udp  bool
		want []listener
	}{
		{tcp, false, []listener{{netip.MustParseAddrPort("127.0.0.1:61222"), 1500, "4711"}}},
		{tcp6, false, []listener{{netip.MustParseAddrPort("[::]:22"), 0, "4713"}, {netip.MustParseAddrPort("[::1]:3306"), 0, "4714"}}},
		{udp, true, []listener{{netip.MustParseAddrPort("127.0.0.1:53"), 101, "4715"}}},
	} {
		got := listeners(c.text, c.udp)
		if len(got) != len(c.want) {
			t.Fatalf("%+v, want %+v", got, c.want)
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%+v, want %+v", got[i], c.want[i])
			}
		}
	}
	for _, c := range []struct {
		address, wanted string
		want            bool
	}{
		{"127.0.0.1:22", "127.0.0.1", true}, {"127.0.0.1:22", "127.0.0.2", false}, {"127.0.0.1:22", "0.0.0.0", true},
		{"127.0.0.1:22", "", true}, {"[::]:22", "127.0.0.1", true}, {"0.0.0.0:22", "192.0.2.1", true}, {"127.0.0.1:23", "127.0.0.1", false},
	} {
		if got := (listener{address: netip.MustParseAddrPort(c.address)}).meets(c.wanted, 22); got != c.want {
			t.Errorf("%s and %s: %v", c.address, c.wanted, got)
		}
	}
}

// Whatever a table has in it, reading it does no harm.
func TestListenersIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.OneOf(rapid.StringMatching(`[0-9A-F]{0,40}(:[0-9A-F]{0,5})?`), rapid.Just("0A"), rapid.String())
		fields := rapid.SliceOfN(field, 0, 14).Draw(t, "fields")
		for _, l := range listeners(strings.Join(fields, " "), rapid.Bool().Draw(t, "udp")) {
			if !l.address.IsValid() {
				t.Fatalf("%+v", l)
			}
		}
	})
}

// This process has what it looks for itself, and is not meant.
func TestNobodyElseHasIt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().(*net.TCPAddr)
	if u := portUser("tcp", "127.0.0.1", address.Port); u.pid != 0 || u.uid != os.Geteuid() {
		t.Errorf("%+v", u)
	}
	file := filepath.Join(t.TempDir(), "disk.img")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := &Engine{}
	if who := e.nameUser(imageUser(file)); who != "" {
		t.Error(who)
	}
	if who := e.nameUser(resourceUser{uid: 4242424}); who != "a process of the user id 4242424" {
		t.Error(who)
	}
	if who := e.nameUser(resourceUser{pid: 7, executable: "nginx"}); who != "process 7 (nginx)" {
		t.Error(who)
	}
	if who := e.nameUser(resourceUser{pid: 7, executable: "qemu-system-x86_64", dataDir: "/srv/web"}); who != "the machine in /srv/web (process "+strconv.Itoa(7)+", qemu-system-x86_64)" {
		t.Error(who)
	}
}
