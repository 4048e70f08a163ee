package hostprobe

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// findFirmware returns the UEFI images under a root directory, best first: those with a firmware
// descriptor, in the order of the descriptors; then those at the distributions' known paths.
func findFirmware(root string) []qemucmd.FirmwareImage {
	var images []qemucmd.FirmwareImage
	for _, c := range append(described(root), known()...) {
		size, ok := regularFile(root, c.Code)
		if _, okVars := regularFile(root, c.Vars); !ok || !okVars {
			continue
		}
		// The 4 MiB flash has 3.5 MiB of code, the 2 MiB flash 1.9.
		c.FourMiB = size > 2<<20
		if !slices.Contains(images, c) {
			images = append(images, c)
		}
	}
	return images
}

func regularFile(root, name string) (size int64, ok bool) {
	info, err := os.Stat(filepath.Join(root, name))
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// known returns the images of the distributions. Each code is paired with its variables: Secure
// Boot without enrolled keys enforces nothing, so there is no secure pair for Arch, whose package
// has no such variables.
func known() []qemucmd.FirmwareImage {
	const (
		debian   = "/usr/share/OVMF/" // and Alpine
		fedora   = "/usr/share/edk2/ovmf/"
		fedora4M = "/usr/share/edk2/ovmf-4m/"
		arch     = "/usr/share/edk2/x64/"
	)
	return []qemucmd.FirmwareImage{
		{Code: debian + "OVMF_CODE_4M.fd", Vars: debian + "OVMF_VARS_4M.fd"},
		{Code: fedora4M + "OVMF_CODE.fd", Vars: fedora4M + "OVMF_VARS.fd"},
		{Code: arch + "OVMF_CODE.4m.fd", Vars: arch + "OVMF_VARS.4m.fd"},
		{Code: debian + "OVMF_CODE.fd", Vars: debian + "OVMF_VARS.fd"},
		{Code: fedora + "OVMF_CODE.fd", Vars: fedora + "OVMF_VARS.fd"},
		{Code: arch + "OVMF_CODE.fd", Vars: arch + "OVMF_VARS.fd"},
		{Secure: true, Code: debian + "OVMF_CODE_4M.ms.fd", Vars: debian + "OVMF_VARS_4M.ms.fd"},
		{Secure: true, Code: debian + "OVMF_CODE_4M.secboot.fd", Vars: debian + "OVMF_VARS_4M.ms.fd"},
		{Secure: true, Code: fedora4M + "OVMF_CODE.secboot.fd", Vars: fedora4M + "OVMF_VARS.secboot.fd"},
		{Secure: true, Code: debian + "OVMF_CODE.ms.fd", Vars: debian + "OVMF_VARS.ms.fd"},
		{Secure: true, Code: debian + "OVMF_CODE.secboot.fd", Vars: debian + "OVMF_VARS.ms.fd"},
		{Secure: true, Code: fedora + "OVMF_CODE.secboot.fd", Vars: fedora + "OVMF_VARS.secboot.fd"},
	}
}

// descriptor is a part of a firmware descriptor, as specified by QEMU's docs/interop/firmware.json.
type descriptor struct {
	InterfaceTypes []string `json:"interface-types"`
	Mapping        struct {
		Device        string      `json:"device"`
		Mode          string      `json:"mode"`
		Executable    flashedFile `json:"executable"`
		NVRAMTemplate flashedFile `json:"nvram-template"`
	} `json:"mapping"`
	Targets []struct {
		Architecture string   `json:"architecture"`
		Machines     []string `json:"machines"`
	} `json:"targets"`
	Features []string `json:"features"`
}

type flashedFile struct {
	Filename string `json:"filename"`
	Format   string `json:"format"`
}

// described reads the descriptors. By the specification, files are taken in the order of their
// names, an administrator's file replaces the distribution's of the same name, and an empty file
// removes it.
func described(root string) []qemucmd.FirmwareImage {
	files := map[string]string{}
	for _, dir := range []string{"usr/share/qemu/firmware", "etc/qemu/firmware"} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			continue // there are none
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".json") {
				files[e.Name()] = filepath.Join(root, dir, e.Name())
			}
		}
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	var images []qemucmd.FirmwareImage
	for _, name := range names {
		data, err := os.ReadFile(files[name])
		if err != nil {
			continue
		}
		var d descriptor
		if json.Unmarshal(data, &d) != nil {
			continue // of another form; also an empty file, which is no JSON
		}
		if image, ok := d.image(); ok {
			images = append(images, image)
		}
	}
	return images
}

// image returns the image, and reports whether it fits the standard machine.
func (d descriptor) image() (qemucmd.FirmwareImage, bool) {
	m := d.Mapping
	feature := func(name string) bool { return slices.Contains(d.Features, name) }
	switch {
	case !slices.Contains(d.InterfaceTypes, "uefi"),
		m.Device != "flash", m.Mode != "" && m.Mode != "split",
		m.Executable.Format != "raw", m.NVRAMTemplate.Format != "raw",
		!d.fitsQ35():
		return qemucmd.FirmwareImage{}, false
	}
	image := qemucmd.FirmwareImage{Code: m.Executable.Filename, Vars: m.NVRAMTemplate.Filename}
	switch {
	case feature("secure-boot") && feature("enrolled-keys"):
		image.Secure = true
	case feature("secure-boot"), feature("requires-smm"):
		// It does not enforce Secure Boot, but needs SMM.
		return qemucmd.FirmwareImage{}, false
	}
	return image, true
}

func (d descriptor) fitsQ35() bool {
	for _, t := range d.Targets {
		if t.Architecture != "x86_64" {
			continue
		}
		for _, pattern := range t.Machines {
			// Patterns name families of machine types: any version will do.
			if ok, err := path.Match(pattern, "pc-q35-9.0"); err == nil && ok {
				return true
			}
		}
	}
	return false
}
