package hostprobe

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// image4M and image2M are code sizes of the two flash layouts.
const (
	image4M = 3653632
	image2M = 1966080
)

func descriptorJSON(code, vars, features string) string {
	return `{"interface-types":["uefi"],"mapping":{"device":"flash",
	"executable":{"filename":"` + code + `","format":"raw"},"nvram-template":{"filename":"` + vars + `","format":"raw"}},
	"targets":[{"architecture":"x86_64","machines":["pc-i440fx-*","pc-q35-*"]}],"features":[` + features + `]}`
}

func TestFindFirmware(t *testing.T) {
	const (
		plain  = `"verbose-dynamic"`
		locked = `"requires-smm","secure-boot","enrolled-keys"`
		open   = `"requires-smm","secure-boot"`
		dir    = "/usr/share/qemu/firmware/"
		etc    = "/etc/qemu/firmware/"
	)
	code := strings.Repeat("x", image4M)
	small := strings.Repeat("x", image2M)
	pair := func(secure, fourMiB bool, code, vars string) qemucmd.FirmwareImage {
		return qemucmd.FirmwareImage{Secure: secure, FourMiB: fourMiB, Code: code, Vars: vars}
	}
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []qemucmd.FirmwareImage
	}{
		{"an empty host has none", nil, nil},
		{
			"descriptors count in the order of their names",
			map[string]string{
				dir + "60.json": descriptorJSON("/fw/code", "/fw/vars", plain),
				dir + "50.json": descriptorJSON("/fw/small", "/fw/vars", plain),
				dir + "40.json": descriptorJSON("/fw/code", "/fw/vars.ms", locked),
				"/fw/code":      code, "/fw/small": small, "/fw/vars": "v", "/fw/vars.ms": "v",
			},
			[]qemucmd.FirmwareImage{pair(true, true, "/fw/code", "/fw/vars.ms"), pair(false, false, "/fw/small", "/fw/vars"), pair(false, true, "/fw/code", "/fw/vars")},
		},
		{
			"code that needs SMM without enrolled keys is neither plain nor secure",
			map[string]string{dir + "50.json": descriptorJSON("/fw/code", "/fw/vars", open), "/fw/code": code, "/fw/vars": "v"},
			nil,
		},
		{
			"the administrator replaces and removes descriptors",
			map[string]string{
				dir + "a.json": descriptorJSON("/fw/code", "/fw/vars", plain), etc + "a.json": descriptorJSON("/fw/small", "/fw/vars", plain),
				dir + "b.json": descriptorJSON("/fw/code", "/fw/vars", plain), etc + "b.json": "",
				"/fw/code": code, "/fw/small": small, "/fw/vars": "v",
			},
			[]qemucmd.FirmwareImage{pair(false, false, "/fw/small", "/fw/vars")},
		},
		{
			"other formats, machines, mappings and files that are missing are passed over",
			map[string]string{
				dir + "a.json": strings.ReplaceAll(descriptorJSON("/fw/code", "/fw/vars", plain), `"raw"`, `"qcow2"`),
				dir + "b.json": strings.ReplaceAll(descriptorJSON("/fw/code", "/fw/vars", plain), "pc-q35-*", "microvm"),
				dir + "c.json": strings.ReplaceAll(descriptorJSON("/fw/code", "/fw/vars", plain), "x86_64", "aarch64"),
				dir + "d.json": strings.ReplaceAll(descriptorJSON("/fw/code", "/fw/vars", plain), `"flash"`, `"memory"`),
				dir + "e.json": strings.ReplaceAll(descriptorJSON("/fw/code", "/fw/vars", plain), `"flash"`, `"flash","mode":"stateless"`),
				dir + "f.json": descriptorJSON("/fw/code", "/fw/missing", plain),
				dir + "g.json": "{", dir + "h.txt": descriptorJSON("/fw/code", "/fw/vars", plain),
				"/fw/code": code, "/fw/vars": "v",
			},
			nil,
		},
		{
			"without descriptors the distributions' places are known",
			map[string]string{
				"/usr/share/OVMF/OVMF_CODE_4M.fd": code, "/usr/share/OVMF/OVMF_VARS_4M.fd": "v",
				"/usr/share/OVMF/OVMF_CODE.fd": small, "/usr/share/OVMF/OVMF_VARS.fd": "v",
				"/usr/share/OVMF/OVMF_CODE_4M.secboot.fd": code, "/usr/share/OVMF/OVMF_VARS_4M.ms.fd": "v",
			},
			[]qemucmd.FirmwareImage{
				pair(false, true, "/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"),
				pair(false, false, "/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"),
				pair(true, true, "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"),
			},
		},
		{
			"Arch has no variables with enrolled keys",
			map[string]string{
				"/usr/share/edk2/x64/OVMF_CODE.4m.fd": code, "/usr/share/edk2/x64/OVMF_VARS.4m.fd": "v",
				"/usr/share/edk2/x64/OVMF_CODE.secboot.4m.fd": code,
			},
			[]qemucmd.FirmwareImage{pair(false, true, "/usr/share/edk2/x64/OVMF_CODE.4m.fd", "/usr/share/edk2/x64/OVMF_VARS.4m.fd")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, content := range test.files {
				write(t, filepath.Join(root, name), content)
			}
			if diff := cmp.Diff(test.want, findFirmware(root)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
