package live

// Decide returns what to do now. It depends on its argument alone. Without a wanted
// configuration, or that which QEMU was started with, there is nothing to do.
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
	d.power() // the guest executes nothing before all the rest was tried
	d.restart()
	return d.out
}
