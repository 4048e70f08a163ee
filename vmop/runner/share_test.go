package runner

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// nineP are two folders that QEMU serves by 9p, one of them for reading only, and what
// a guest with a driver for that sees of them.
type nineP struct{ dir string }

func newNineP(t *testing.T) nineP {
	t.Helper()
	n := nineP{t.TempDir()}
	for _, dir := range []string{"write", "read"} {
		if err := os.Mkdir(filepath.Join(n.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(n.dir, dir, "hello"), "of the host's "+dir)
	}
	put(t, filepath.Join(n.dir, "secret"), "secret")
	for name, to := range map[string]string{"relative": "../secret", "absolute": filepath.Join(n.dir, "secret")} {
		if err := os.Symlink(to, filepath.Join(n.dir, "write", name)); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (n nineP) shares() []runnerconfig.Share {
	return []runnerconfig.Share{
		{Tag: "write", Dir: filepath.Join(n.dir, "write"), Protocol: "9p"},
		{Tag: "read", Dir: filepath.Join(n.dir, "read"), Protocol: "9p", ReadOnly: true},
	}
}

// seenIn mounts the folders as cloud-init would, and looks at them from both sides.
func (n nineP) seenIn(t *testing.T, c *tinyguest.Console) {
	t.Helper()
	const options = " trans=virtio,version=9p2000.L,msize=262144"
	for _, tag := range []string{"write", "read"} {
		command(t, c, "share 9p "+tag+" /"+tag+options)
		if got := command(t, c, "cat /"+tag+"/hello"); !strings.Contains(got, "of the host's "+tag) {
			t.Errorf("the guest reads %q", got)
		}
	}
	command(t, c, "store /write/answer "+hex.EncodeToString([]byte("of the guest")))
	if got := string(contents(t, filepath.Join(n.dir, "write", "answer"))); got != "of the guest" {
		t.Errorf("the guest wrote %q", got)
	}
	put(t, filepath.Join(n.dir, "write", "later"), "later")
	if got := command(t, c, "cat /write/later"); !strings.Contains(got, "later") {
		t.Errorf("what came later is %q", got)
	}
	for _, line := range []string{
		"store /read/answer 00", "store /read/hello 00", // for reading only
		"cat /write/relative", "cat /write/absolute", // out of the folder
		"cat /write/../secret",
	} {
		if got, err := c.Command(withPatience(t), line); err == nil {
			t.Errorf("%s: %q", line, got)
		}
	}
	if left, err := os.ReadDir(filepath.Join(n.dir, "read")); err != nil || len(left) != 1 {
		t.Errorf("in the folder for reading is %v, %v", left, err)
	}
	if got := string(contents(t, filepath.Join(n.dir, "read", "hello"))); got != "of the host's read" {
		t.Errorf("a file for reading is %q", got)
	}
}
