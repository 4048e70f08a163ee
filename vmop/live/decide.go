package live

// Decide returns the steps to take now. It depends on its argument alone. Without the wanted
// configuration, or the one that QEMU was started with, it returns no steps.
func Decide(in Input) Decision {
	if in.Config == nil || in.Machine.Started == nil {
		return Decision{Memory: in.Memory.clone()}
	}
	d := &decider{in: in, out: Decision{Memory: in.Memory.clone()}}
	d.cpus()
	d.memory()
	d.media()
	d.disks()
	d.attachments()
	d.usbDevices()
	d.display()
	d.reset()
	d.power() // last: the guest executes nothing before all the rest was tried
	d.restart()
	return d.out
}
