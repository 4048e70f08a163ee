package tinyguest

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// wantedModules are the drivers for the guest. Those that a kernel has built in or lacks are
// skipped silently: kernels differ in this.
var wantedModules = []string{
	// Buses and QEMU's devices on them.
	"virtio_pci", "virtio_mmio", "virtio_blk", "virtio_net", "virtio_console", "virtio_balloon", "virtio_scsi",
	"virtio_rng", "virtio_mem", "virtio_input", "sd_mod", "sr_mod", "ahci", "ata_piix", "e1000", "e1000e", "nvme",
	"tpm_crb", "tpm_tis", "qemu_fw_cfg",
	// What reports a panic or a hang of the guest to the host.
	"pvpanic_pci", "pvpanic_mmio", "i6300esb",
	// The power button.
	"button", "evdev",
	// File systems of disks, of cloud-init's seed, of firmware variables.
	"ext4", "isofs", "vfat", "nls_cp437", "nls_ascii", "nls_iso8859_1", "nls_utf8", "efivarfs",
	// Folders of the host.
	"9p", "9pnet_virtio", "virtiofs",
	// Checksums that ext4 and the initialization of drivers request by algorithm.
	"crc32c_generic", "crc16",
}

// module is a kernel module and its metadata.
type module struct {
	name    string
	depends []string // direct dependencies
	aliases []string // patterns of the devices that it drives
}

// moduleName maps a file to the module's name, in which - and _ are equivalent.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// copyModules puts the wanted modules below from, and all their dependencies, unpacked into the
// folder to.
func copyModules(ctx context.Context, to, from string) error {
	files := map[string]string{}
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.Contains(e.Name(), ".ko") {
			files[moduleName(path)] = path
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	queue := slices.Clone(wantedModules)
	done := map[string]bool{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		path, ok := files[name]
		if !ok || done[name] {
			continue
		}
		done[name] = true
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if unpacked, err := unpack(ctx, data); err == nil {
			data = unpacked
		} else if !errors.Is(err, errNotPacked) {
			return fmt.Errorf("%s: %w", path, err)
		}
		m, err := parseModule(name, data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.WriteFile(filepath.Join(to, name+".ko"), data, 0o600); err != nil {
			return err
		}
		queue = append(queue, m.depends...)
	}
	return nil
}

// parseModule reads a module's section .modinfo: KEY=VALUE strings, each terminated by a zero byte.
func parseModule(name string, data []byte) (module, error) {
	m := module{name: name}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return m, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return m, errors.New("no section .modinfo: not a kernel module")
	}
	info, err := section.Data()
	if err != nil {
		return m, err
	}
	for entry := range strings.SplitSeq(string(info), "\x00") {
		k, v, _ := strings.Cut(entry, "=")
		switch {
		case k == "depends" && v != "":
			for d := range strings.SplitSeq(v, ",") {
				m.depends = append(m.depends, moduleName(d))
			}
		case k == "alias" && !strings.ContainsAny(v, " \n"):
			m.aliases = append(m.aliases, v)
		}
	}
	return m, nil
}

// moduleList returns the index of the modules for the guest, see guest/modules.c. The result does
// not depend on the order of the argument.
func moduleList(modules []module) string {
	byName := map[string]module{}
	for _, m := range modules {
		byName[m.name] = m
	}
	names := make([]string, 0, len(byName))
	for n := range byName {
		names = append(names, n)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, n := range names {
		aliases := slices.Sorted(slices.Values(byName[n].aliases))
		for _, a := range slices.Compact(aliases) {
			fmt.Fprintf(&b, "alias %s %s\n", a, n)
		}
	}
	for _, n := range names {
		order := loadOrder(byName, n, nil, map[string]bool{})
		fmt.Fprintf(&b, "module %s\n", strings.Join(append([]string{n}, order[:len(order)-1]...), " "))
	}
	return b.String()
}

// loadOrder appends name after its dependencies, unless seen. Missing dependencies are built into
// the kernel.
func loadOrder(byName map[string]module, name string, order []string, seen map[string]bool) []string {
	m, ok := byName[name]
	if !ok || seen[name] {
		return order
	}
	seen[name] = true
	for _, d := range slices.Sorted(slices.Values(m.depends)) {
		order = loadOrder(byName, d, order, seen)
	}
	return append(order, name)
}
