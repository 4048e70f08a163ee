package spectest

import (
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// Foreign generates machines as VM-Operator has stored them: what
// [spec.Validate] finds wrong with them, [spec.Amend] repairs.
func Foreign() *rapid.Generator[*spec.VirtualMachine] {
	return rapid.Custom(func(t *rapid.T) *spec.VirtualMachine {
		vm := VirtualMachine().Draw(t, "vm")
		m := &vm.Spec.VM
		spoil := func(what string) bool { return rapid.Bool().Draw(t, what) }
		// More than any machine has is repaired by nobody.
		if n := m.MaximumCPUs; n != nil && *n < limits.MaxCPUs && m.Accelerator != spec.AcceleratorTCG && spoil("more CPUs than the maximum") {
			m.CurrentCPUs = new(min(*n+rapid.Int32Range(1, 8).Draw(t, "more"), limits.MaxCPUs))
		}
		if m.MaximumCPUs != nil && spoil("no CPU at most") {
			m.MaximumCPUs = new(rapid.Int32Range(-4, 0).Draw(t, "maximumCpus"))
			m.CurrentCPUs = nil
		}
		if spoil("no CPU now") {
			m.CurrentCPUs = new(rapid.Int32Range(-4, 0).Draw(t, "currentCpus"))
		}
		if m.MaximumRAM != nil && spoil("more memory than the maximum") {
			q := m.MaximumRAM.DeepCopy()
			q.Add(q)
			m.CurrentRAM = &q
		}
		if spoil("odd timeout") {
			m.PowerdownTimeout = new(rapid.SampledFrom([]int32{-1, 2147484, 1<<31 - 1}).Draw(t, "powerdownTimeout"))
		}
		for i := range m.Disks {
			if m.Disks[i].Bootindex != nil && spoil("no boot index") {
				m.Disks[i].Bootindex = new(int32(-1))
			}
		}
		if s := m.Display; s != nil && s.Spice != nil {
			if spoil("many redirects") {
				m.USBDevices = nil // which VM-Operator's machines do not have
				s.Spice.UsbRedirects = new(rapid.SampledFrom([]int32{-1, 15, 40}).Draw(t, "usbRedirects"))
			}
			if spoil("odd streaming") {
				s.Spice.StreamingVideo = "sometimes"
			}
		}
		if image := vm.Spec.Image; image != nil && image.Source != "" && spoil("two images") {
			image.Repository = "registry.example.org"
		}
		return vm
	})
}
