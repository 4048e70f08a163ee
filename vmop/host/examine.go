package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// littleSpace is the recommended free space of a file system for disks, in bytes.
const littleSpace = 1 << 30

type surroundings struct {
	probed   hostprobe.Result
	probeErr error
	// data and runtime are why the directories cannot be used, "" if they can.
	dataDir, data       string
	runtimeDir, runtime string
	tooLong             string
	free                uint64
	// memory is available to processes, in bytes; 0 if unknown.
	memory uint64
	// bridges are this host's; mayBridge reports whether interfaces can be attached to them.
	bridges   []string
	mayBridge bool
	images    examinedImages
}

// Examine reports what this host has for its machines, and what is missing. It changes nothing. The
// findings are always in the same order.
func (h *Host) Examine(ctx context.Context, probe hostprobe.Options) ([]Finding, error) {
	s := surroundings{dataDir: h.root, runtimeDir: h.runtime}
	s.probed, s.probeErr = hostprobe.Probe(ctx, probe)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.data, s.runtime, s.tooLong = unusable(h.root), unusable(h.runtime), tooLong(h.runtime, h.env)
	var fs unix.Statfs_t
	if dir := existing(h.root); unix.Statfs(dir, &fs) == nil {
		s.free = fs.Bavail * uint64(fs.Bsize)
	}
	s.memory = availableMemory()
	bridges, err := filepath.Glob("/sys/class/net/*/bridge")
	if err != nil {
		return nil, err
	}
	for _, b := range bridges {
		s.bridges = append(s.bridges, filepath.Base(filepath.Dir(b)))
	}
	s.mayBridge = os.Geteuid() == 0
	if info, err := os.Stat(s.probed.Host.BridgeHelper); err == nil && info.Mode()&os.ModeSetuid != 0 {
		s.mayBridge = true
	}
	s.images = h.examineImages(ctx)
	return diagnose(&s), ctx.Err()
}

// existing returns the path, or its nearest parent that exists.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func unusable(path string) string {
	dir := existing(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return dir + ": not a directory"
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Sprintf("%s: %v", dir, err)
	}
	return ""
}

// availableMemory is the kernel's own estimate, see proc(5).
func availableMemory() uint64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return meminfo(string(data), "MemAvailable")
}

func diagnose(s *surroundings) []Finding {
	var out []Finding
	say := func(status FindingStatus, subject, do, format string, args ...any) {
		out = append(out, Finding{Subject: subject, Status: status, Found: fmt.Sprintf(format, args...), Do: do})
	}
	directory := func(subject, dir, problem, do string) {
		if problem == "" {
			say(FindingOK, subject, "", "%s", dir)
		} else {
			say(FindingBroken, subject, do, "%s cannot be written to: %s", dir, problem)
		}
	}
	host := &s.probed.Host
	if s.probeErr != nil {
		do := "see what QEMU says"
		if notFound := (*hostprobe.NotFoundError)(nil); errors.As(s.probeErr, &notFound) {
			do = "install QEMU for x86_64 (Debian: package qemu-system-x86, Fedora: qemu-system-x86-core)"
		}
		say(FindingBroken, "QEMU", do, "%v", s.probeErr)
	} else {
		v := host.Version
		say(FindingOK, "QEMU", "", "%d.%d.%d, %s", v.Major, v.Minor, v.Micro, host.QEMU)
		diagnoseQEMU(host, s.probed.Notes, say)
		diagnoseBridges(s, say)
	}
	directory("machines", s.dataDir, s.data, "choose another directory with --data-dir or VMOP_DATA_DIR")
	if s.tooLong != "" {
		say(FindingBroken, "sockets", "set XDG_RUNTIME_DIR to a shorter directory of your own", "%s", s.tooLong)
	} else {
		directory("sockets", s.runtimeDir, s.runtime, "set XDG_RUNTIME_DIR to a directory of your own")
	}
	if s.free < littleSpace {
		say(FindingLimited, "space", "make room: a guest whose disk cannot grow is paused", "%s free for disks", mebibytes(s.free))
	} else {
		say(FindingOK, "space", "", "%s free for disks", mebibytes(s.free))
	}
	diagnoseImages(&s.images, say)
	if s.memory != 0 {
		say(FindingOK, "memory", "", "%s available", mebibytes(s.memory))
	}
	return out
}

func diagnoseQEMU(h *qemucmd.Host, notes []string, say func(status FindingStatus, subject, do, format string, args ...any)) {
	has := func(ok bool, subject, found, lacks, do string) {
		if ok {
			say(FindingOK, subject, "", "%s", found)
		} else {
			say(FindingLimited, subject, do, "%s", lacks)
		}
	}
	why := "guests run in software emulation, which is slow"
	for _, n := range notes {
		if reason, ok := strings.CutPrefix(n, "KVM: "); ok {
			why = reason + "; " + why
		}
	}
	has(h.KVM, "KVM", "a guest was seen to execute with it", why,
		"switch virtualization on in the firmware of this host, load the module kvm_intel or kvm_amd, and join the group of /dev/kvm")
	has(len(h.Firmware) > 0, "UEFI", "firmware images are installed", "no firmware images: machines need firmware: bios", "install them (Debian: package ovmf, Fedora: edk2-ovmf)")
	secure := slices.ContainsFunc(h.Firmware, func(f qemucmd.FirmwareImage) bool { return f.Secure })
	has(secure, "Secure Boot", "firmware with enrolled keys is installed", "no firmware with enrolled keys: no firmware: secure", "install it (Debian: package ovmf, Fedora: edk2-ovmf)")
	has(h.SWTPM != "", "TPM", h.SWTPM, "no swtpm: no useTpm", "install it (package swtpm)")
	const share = "install a newer one (package virtiofsd of Debian 13, Ubuntu 24.04, Fedora), or use protocol: 9p"
	switch v := h.VirtioFSD; {
	case v.Path == "":
		say(FindingLimited, "shared folders", "install it (package virtiofsd of Debian 13, Ubuntu 24.04, Fedora), or use protocol: 9p", "no virtiofsd: no vm.shares by virtiofs")
	case v.Former && !v.Root:
		say(FindingLimited, "shared folders", share, "%s is the one of QEMU 7.2 and before, which only root can run", v.Path)
	case !v.Namespaces:
		say(FindingLimited, "shared folders", "allow user namespaces (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces), or use protocol: 9p", "%s cannot be confined to a folder here", v.Path)
	case !v.ReadOnly:
		say(FindingLimited, "shared folders", share, "%s cannot share for reading only", v.Path)
	default:
		say(FindingOK, "shared folders", "", "%s", v.Path)
	}
	for _, n := range qemucmd.ServerNeeds() {
		title := n.Protocol.Row().Title
		has(h.Serves(n.Protocol), title, "QEMU has its server", "QEMU has no "+title+" server", n.Remedy)
	}
	has(slices.Contains(h.BlockDrivers, "https"), "images from servers", "QEMU reads them over http and https", "QEMU cannot read CD images over http and https", "install its module (Debian: package qemu-block-extra, Fedora: qemu-block-curl)")
}

func diagnoseBridges(s *surroundings, say func(status FindingStatus, subject, do, format string, args ...any)) {
	switch {
	case len(s.bridges) == 0:
		say(FindingLimited, "bridges", "make one for tap networks; user networks need none", "this host has no bridge")
	case !s.mayBridge && s.probed.Host.BridgeHelper == "":
		say(FindingLimited, "bridges", "install qemu-bridge-helper (Debian: package qemu-system-common, Fedora: qemu-common)", "%s; nothing may attach tap interfaces for you", strings.Join(s.bridges, ", "))
	case !s.mayBridge:
		say(FindingLimited, "bridges", fmt.Sprintf("an administrator allows it with: %s, and a line \"allow %s\" in /etc/qemu/bridge.conf", shellwords.Join("chmod", "u+s", s.probed.Host.BridgeHelper), s.bridges[0]),
			"%s; you may not attach tap interfaces", strings.Join(s.bridges, ", "))
	default:
		say(FindingOK, "bridges", "", "%s", strings.Join(s.bridges, ", "))
	}
}
