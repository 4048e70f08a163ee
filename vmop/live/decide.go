package live

import "fmt"

type decider struct {
	in  Input
	out Decision
	// waits are the keys below "/Runner" of what could be live, but not in this
	// machine.
	waits []string
	// grown are the positions of drives that have grown since the start, and
	// refusedGrowth says why one has not.
	grown         []int
	refusedGrowth string
}

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

// goal names what an attempt is for. A new configuration is a new goal.
func (d *decider) goal(what any) string { return fmt.Sprintf("%v in %d", what, d.in.Generation) }

// because adds the cause to a message, if there is one.
func because(problem string) string {
	if problem == "" {
		return ""
	}
	return ": " + problem
}
