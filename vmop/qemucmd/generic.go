package qemucmd

// GenericHost returns a host for rendering a machine where it will not run: Debian 12 with QEMU 7.2
// and all of its modules, KVM, the ovmf and swtpm packages, and Debian 13's virtiofsd. Every call
// returns a new value, which the caller may modify.
func GenericHost() Host {
	const ovmf = "/usr/share/OVMF/"
	h := Host{
		QEMU:    "/usr/bin/qemu-system-x86_64",
		Version: Version{Major: 7, Minor: 2},
		MachineTypes: []MachineType{
			{Name: "pc-i440fx-7.2", Alias: "pc", MaxCPUs: 255},
			{Name: "pc-q35-7.2", Alias: "q35", MaxCPUs: 288},
			{Name: "pc-q35-7.1", MaxCPUs: 288},
			{Name: "pc-q35-7.0", MaxCPUs: 288},
			{Name: "pc-q35-6.2", MaxCPUs: 288},
			{Name: "pc-q35-6.1", MaxCPUs: 288},
			{Name: "pc-q35-6.0", MaxCPUs: 288},
		},
		KVM: true,
		Firmware: []FirmwareImage{
			{FourMiB: true, Code: ovmf + "OVMF_CODE_4M.fd", Vars: ovmf + "OVMF_VARS_4M.fd"},
			{Code: ovmf + "OVMF_CODE.fd", Vars: ovmf + "OVMF_VARS.fd"},
			{Secure: true, FourMiB: true, Code: ovmf + "OVMF_CODE_4M.ms.fd", Vars: ovmf + "OVMF_VARS_4M.ms.fd"},
			{Secure: true, Code: ovmf + "OVMF_CODE.ms.fd", Vars: ovmf + "OVMF_VARS.ms.fd"},
		},
		Devices:      knownModels(),
		BlockDrivers: []string{"file", "host_device", "http", "https", "qcow2", "raw"},
		JSONDevice:   true,
		SWTPM:        "/usr/bin/swtpm",
		VirtioFSD:    VirtioFSD{Path: "/usr/libexec/virtiofsd", ReadOnly: true, Namespaces: true},
		BridgeHelper: "/usr/lib/qemu/qemu-bridge-helper",
	}
	for _, n := range ServerNeeds() {
		h.SetServes(n.Protocol, true)
	}
	return h
}
