package debianguest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// recipeVersion must change when the steps of the build change in a way that the lists below do not
// show.
const recipeVersion = 1

// diskSize is the size of the root file system in the notation of mke2fs. The packages take about a
// quarter; the file is sparse.
const diskSize = "2G"

// basePackages are what debootstrap installs beyond the required ones. The rest is installed by
// apt, because debootstrap's resolver does not know the virtual packages that cloud-init depends
// on.
var basePackages = []string{"ca-certificates", "dbus", "kmod", "systemd-sysv", "udev"}

// packages are installed by apt. The cloud kernel has virtio drivers, boots directly and is small;
// lz4 unpacks fastest under emulation.
var packages = []string{
	"cloud-init", "ifupdown", "initramfs-tools", "iproute2", "isc-dhcp-client",
	"linux-image-cloud-amd64", "lz4", "netbase", "openssh-server", "qemu-guest-agent",
}

// guestFile is written into the root file system.
type guestFile struct {
	Path    string
	Mode    uint32
	Content string
}

// buildFiles exist only while packages are installed.
var buildFiles = []guestFile{
	// Packages must not start services in the host's process tree.
	{"usr/sbin/policy-rc.d", 0o755, "#!/bin/sh\nexit 101\n"},
	// An interrupted build is discarded, so no order of writes is needed.
	{"etc/dpkg/dpkg.cfg.d/vmop-build", 0o644, "force-unsafe-io\n"},
	{"etc/apt/apt.conf.d/99vmop-build", 0o644, "APT::Install-Recommends \"false\";\nAcquire::Languages \"none\";\n"},
}

// guestFiles stay in the guest. They are written before packages are installed, so that the initial
// RAM disk is built with them.
var guestFiles = []guestFile{
	{"etc/dpkg/dpkg.cfg.d/vmop-small", 0o644, "path-exclude=/usr/share/doc/*\npath-exclude=/usr/share/man/*\npath-exclude=/usr/share/locale/*\n"},
	// Only what is needed to mount the root: a third of the usual size, and of the time to unpack
	// it.
	{"etc/initramfs-tools/conf.d/vmop", 0o644, "MODULES=list\nCOMPRESS=lz4\n"},
	{"usr/share/initramfs-tools/modules.d/vmop", 0o644, "virtio_pci\nvirtio_blk\next4\n"},
	{"etc/fstab", 0o644, "/dev/vda / ext4 defaults,noatime 0 0\n"},
	{"etc/hostname", 0o644, "unconfigured\n"},
	{"etc/hosts", 0o644, "127.0.0.1 localhost\n::1 localhost\n"},
	{"etc/systemd/journald.conf.d/vmop.conf", 0o644, "[Journal]\nStorage=volatile\n"},
	// One data source, so that cloud-init does not probe for others, and the modules that tests
	// use: starting Python is most of the boot under emulation.
	{"etc/cloud/cloud.cfg.d/90_vmop.cfg", 0o644, `datasource_list: [NoCloud]
cloud_init_modules: [bootcmd, write-files, mounts, set_hostname, update_etc_hosts, users-groups]
cloud_config_modules: [timezone, runcmd]
cloud_final_modules: [scripts-user, final-message, power-state-change]
`},
}

// maskedUnits are useless for a guest that lives for a minute, and cost seconds under emulation.
var maskedUnits = []string{
	"apt-daily-upgrade.timer", "apt-daily.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
	"e2scrub_reap.service", "fstrim.timer", "systemd-tmpfiles-clean.timer",
	"systemd-hwdb-update.service", "systemd-journal-flush.service", "systemd-pstore.service",
	"dev-hugepages.mount", "dev-mqueue.mount", "sys-fs-fuse-connections.mount",
	"sys-kernel-debug.mount", "sys-kernel-tracing.mount",
}

func recipeHash() string {
	recipe, err := json.Marshal([]any{
		recipeVersion, release, diskSize, basePackages, packages, buildFiles, guestFiles, maskedUnits,
	})
	if err != nil {
		panic(fmt.Sprintf("the recipe is made of strings and numbers: %v", err))
	}
	sum := sha256.Sum256(recipe)
	return hex.EncodeToString(sum[:8])
}
