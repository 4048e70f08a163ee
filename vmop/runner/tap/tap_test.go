package tap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/testnet"
)

// roleEnv makes the test binary something else: see TestMain.
const roleEnv = "VMOP_TEST_TAP_ROLE"

func TestMain(m *testing.M) {
	switch role, rest, _ := strings.Cut(os.Getenv(roleEnv), " "); role {
	case "open", "new":
		if err := dropCapabilities(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if role == "new" {
			_, err := New(rest, 1)
			fmt.Println(errors.Is(err, ErrNotPermitted), err)
			os.Exit(0)
		}
		// What a runner without privileges does. It stays until its input ends.
		d, err := Open(rest, 2)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("open", d.Name, d.MTU, len(d.Queues))
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func check(t *testing.T, name string, size int) {
	t.Helper()
	i, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	if i.MTU != size || i.Flags&net.FlagUp == 0 || i.HardwareAddr[0] != 0xfe {
		t.Errorf("the interface is %+v", i)
	}
}

// crosses sends a frame into one queue and waits for it at another interface.
func crosses(t *testing.T, from, to *Device) {
	t.Helper()
	frame := make([]byte, 10+64) // a header for offloads before the frame
	copy(frame[10:], "\xff\xff\xff\xff\xff\xff\x52\x54\x00\x00\x00\x01")
	binary.BigEndian.PutUint16(frame[22:], 0x88b5) // for experiments
	copy(frame[24:], "across the bridge")
	for _, q := range to.Queues {
		if err := unix.SetNonblock(int(q.Fd()), true); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := unix.Write(int(from.Queues[0].Fd()), frame); err != nil {
			t.Fatal(err)
		}
		for _, q := range to.Queues {
			buf := make([]byte, 2048)
			if n, err := unix.Read(int(q.Fd()), buf); err == nil && strings.Contains(string(buf[:n]), "across the bridge") {
				return
			}
		}
	}
	t.Error("no frame crossed the bridge")
}

func TestNew(t *testing.T) {
	if !testnet.Inside(t) {
		return
	}
	testnet.Bridge(t, "br7", 1400, "")
	one, err := New("br7", 1)
	if err != nil {
		t.Fatal(err)
	}
	many, err := New("br7", 4)
	if err != nil {
		t.Fatal(err)
	}
	if one.MTU != 1400 || len(one.Queues) != 1 || len(many.Queues) != 4 || one.Name == many.Name {
		t.Errorf("%+v %+v", one, many)
	}
	check(t, one.Name, 1400)
	check(t, many.Name, 1400)
	crosses(t, one, many)
	for bridge, want := range map[string]string{"br8": "bridge: interface br8: no such device", one.Name: one.Name + " is an interface, but no bridge"} {
		if _, err := New(bridge, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", bridge, err, want)
		}
	}
	if err := errors.Join(one.Close(), many.Close()); err != nil {
		t.Error(err)
	}
	if left := testnet.Interfaces(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// unprivileged is a process of this binary in a role, without any capability.
func unprivileged(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	cmd := testbin.Self(t.Context(), t, roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// dropCapabilities takes all capabilities from the calling thread.
func dropCapabilities() error {
	runtime.LockOSThread()
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

func TestPrepareAndOpen(t *testing.T) {
	if !testnet.Inside(t) {
		return
	}
	testnet.Bridge(t, "br7", 1400, "")
	if out, err := unprivileged(t, "new br7").Output(); err != nil || !strings.HasPrefix(string(out), "true ") {
		t.Errorf("an interface without privileges: %v\n%s", err, out)
	}
	prepare := func(queues int) {
		t.Helper()
		if err := Prepare("vm0123456789-0", "br7", queues, os.Getuid()); err != nil {
			t.Fatal(err)
		}
		check(t, "vm0123456789-0", 1400)
	}
	prepare(1) // a pod that came to no runner leaves this
	prepare(2)
	cmd := unprivileged(t, "open vm0123456789-0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "open vm0123456789-0 1400 2\n" {
		t.Errorf("taken over: %q", line)
	}
	if err := Prepare("vm0123456789-0", "br7", 2, os.Getuid()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("an interface that is in use was prepared: %v", err)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if left := testnet.Interfaces(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := Prepare("vm0123456789-0", "br8", 2, os.Getuid()); err == nil || !strings.Contains(err.Error(), "bridge") {
		t.Errorf("without a bridge: %v", err)
	}
	if _, err := Open("vm0123456789-0", 2); err == nil {
		t.Error("an interface that nobody has prepared was opened")
	}
	if left := testnet.Interfaces(t); len(left) > 0 {
		t.Errorf("left behind by failures: %v", left)
	}
}

func TestHelper(t *testing.T) {
	if !testnet.Inside(t) {
		return
	}
	const helper = "/usr/lib/qemu/qemu-bridge-helper"
	if _, err := os.Stat(helper); err != nil {
		t.Fatalf("%v: install it with: make deps", err)
	}
	testnet.Bridge(t, "br7", 1400, "")
	// The helper's configuration, as an administrator writes it.
	if err := unix.Mount("etc", "/etc", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir("/etc/qemu", 0o755), os.WriteFile("/etc/qemu/bridge.conf", []byte("allow br7\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	d, err := Helper(t.Context(), helper, "br7")
	if err != nil {
		t.Fatal(err)
	}
	check(t, d.Name, 1400)
	if d.MTU != 1400 || len(d.Queues) != 1 {
		t.Errorf("%+v", d)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Helper(t.Context(), helper, "br8"); err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("a bridge that the configuration does not allow: %v", err)
	}
	if _, err := Helper(t.Context(), "/bin/true", "br7"); err == nil || !strings.Contains(err.Error(), "handed nothing over") {
		t.Errorf("a helper that does nothing: %v", err)
	}
	if left := testnet.Interfaces(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
