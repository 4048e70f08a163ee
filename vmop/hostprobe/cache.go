package hostprobe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// cacheFormat changes with the meaning of the cached values.
const cacheFormat = 3

// fileIdentity distinguishes a file or directory from a later one at the same path.
type fileIdentity struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Device   uint64    `json:"device"`
	Inode    uint64    `json:"inode"`
}

type identity struct {
	Binary fileIdentity `json:"binary"`
	// Modules are QEMU's module directories: packages with modules come and go without the binary
	// changing.
	Modules []fileIdentity `json:"modules,omitempty"`
}

func moduleDirs() []string {
	dirs := []string{"/usr/lib/x86_64-linux-gnu/qemu", "/usr/lib64/qemu-kvm", "/usr/lib64/qemu", "/usr/lib/qemu"}
	if dir := os.Getenv("QEMU_MODULE_DIR"); dir != "" {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

func identify(qemu string) (identity, error) {
	binary, err := identifyFile(qemu)
	if err != nil {
		return identity{}, err
	}
	id := identity{Binary: binary}
	for _, dir := range moduleDirs() {
		modules, err := identifyFile(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return identity{}, err
		default:
			id.Modules = append(id.Modules, modules)
		}
	}
	return id, nil
}

func identifyFile(path string) (fileIdentity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileIdentity{}, err
	}
	id := fileIdentity{Path: path, Size: info.Size(), Modified: info.ModTime().UTC()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Device, id.Inode = s.Dev, s.Ino
	}
	return id, nil
}

// equal compares the JSON: times have no location and no monotonic part there.
func (id identity) equal(other identity) bool {
	a, errA := json.Marshal(id)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && string(a) == string(b)
}

type entry struct {
	Format   int          `json:"format"`
	Identity identity     `json:"identity"`
	Host     qemucmd.Host `json:"host"`
	// KVMBoot is the boot of the host in which a KVM guest was seen to execute. A failure is not
	// cached: its cause may pass.
	KVMBoot string `json:"kvmBoot,omitempty"`
}

type cache struct {
	path     string // "" without a cache
	identity identity
	boot     string
	old      entry // the stored entry, zero if none fits
}

// openCache reads the cache of a binary; on any error, the cache is empty.
func openCache(dir string, id identity) cache {
	c := cache{identity: id, boot: bootID()}
	if dir == "" {
		return c
	}
	sum := sha256.Sum256([]byte(id.Binary.Path))
	c.path = filepath.Join(dir, "qemu-"+hex.EncodeToString(sum[:8])+".json")
	data, err := os.ReadFile(c.path)
	if err != nil {
		return c
	}
	var e entry
	if json.Unmarshal(data, &e) == nil && e.Format == cacheFormat && e.Identity.equal(id) {
		c.old = e
	}
	return c
}

// bootID is the kernel's id of this boot, "" if unknown.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

var errNotCached = errors.New("not cached")

func (c cache) facts() (qemucmd.Host, error) {
	if len(c.old.Host.MachineTypes) == 0 {
		return qemucmd.Host{}, errNotCached
	}
	return c.old.Host, nil
}

func (c cache) kvmSeen() bool { return c.boot != "" && c.old.KVMBoot == c.boot }

func (c cache) store(h qemucmd.Host, kvm KVM) error {
	if c.path == "" {
		return nil
	}
	e := entry{Format: cacheFormat, Identity: c.identity, Host: h}
	if kvm.Works {
		e.KVMBoot = c.boot
	}
	if len(c.old.Host.MachineTypes) > 0 && c.old.KVMBoot == e.KVMBoot {
		return nil
	}
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	return atomicfile.ReplaceSoon(c.path, data)
}
