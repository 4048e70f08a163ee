package qemucmd

import (
	"path"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
)

func (b *builder) checkHost() {
	if b.h.QEMU == "" {
		b.errorf("host.qemu", "the path of qemu-system-x86_64 is missing")
	}
	b.text("host.qemu", b.h.QEMU)
	v := b.h.Version
	if v != (Version{}) && (v.Major < 7 || v.Major == 7 && v.Minor < 2) {
		b.errorf("host.version", "QEMU %s is too old: 7.2 is the oldest that takes JSON for all options that need it", v)
	}
}

func (b *builder) checkBootOrder() {
	first := map[int]string{}
	check := func(field string, index *int) {
		if index == nil {
			return
		}
		if other, dup := first[*index]; dup {
			b.errorf(field, "%d is also the boot index of %s", *index, other)
			return
		}
		first[*index] = strings.TrimSuffix(field, ".bootIndex")
	}
	for i, c := range b.m.CDDrives {
		check(indexed("cdDrives", i, "bootIndex"), c.BootIndex)
	}
	for i, d := range b.m.Disks {
		check(indexed("disks", i, "bootIndex"), d.BootIndex)
	}
}

func (b *builder) listeners() (all []struct {
	field string
	s     *Socket
}) {
	add := func(field string, s *Socket) {
		if s != nil {
			all = append(all, struct {
				field string
				s     *Socket
			}{field, s})
		}
	}
	add("monitor", &b.m.Monitor)
	add("toolMonitor", b.m.ToolMonitor)
	add("serial", b.m.Serial)
	add("guestAgent", b.m.GuestAgent)
	add("vmopAgent", b.m.VMOPAgent)
	if b.m.TPM != nil {
		add("tpm.socket", &Socket{Path: b.m.TPM.Socket})
	}
	for i, s := range b.m.Shares {
		if s.Protocol == "" || s.Protocol == ShareVirtioFS {
			add(indexed("shares", i, "socket"), &Socket{Path: s.Socket})
		}
	}
	for server := range b.m.Display.servers {
		if at := server.socket(); at != "" {
			add("display."+string(server.protocol())+".socket", &Socket{Path: at})
		}
	}
	return all
}

// checkSockets checks each socket, and that no two have the same path: the second would replace the
// first, which no client could reach any more.
func (b *builder) checkSockets() {
	first := map[string]string{}
	for _, l := range b.listeners() {
		field := l.field
		if !strings.HasSuffix(field, ".socket") {
			field += ".path"
		}
		if l.s.Path == "" {
			if l.s.FD == 0 {
				b.errorf(field, "a path must be given")
			}
			continue
		}
		b.text(field, l.s.Path)
		if n := len(l.s.Path); n > limits.MaxSocketPath && l.s.FD == 0 {
			b.errorf(field, "%q has %d bytes, and the path of a UNIX socket can have %d; use a shorter runtime directory", l.s.Path, n, limits.MaxSocketPath)
		}
		clean := path.Clean(l.s.Path)
		if other, dup := first[clean]; dup {
			b.errorf(field, "%q is also the path of %s", l.s.Path, other)
			continue
		}
		first[clean] = strings.TrimSuffix(field, ".path")
	}
}

func (b *builder) checkDescriptors() {
	first := map[int]string{}
	checkGiven := func(field string, fd int) {
		if fd < 3 {
			b.errorf(field, "%d is no descriptor that can be handed over: 0 to 2 are QEMU's standard input and output", fd)
			return
		}
		if other, dup := first[fd]; dup {
			b.errorf(field, "descriptor %d is also that of %s", fd, other)
			return
		}
		first[fd] = strings.TrimSuffix(field, ".fd")
	}
	check := func(field string, fd int) {
		if fd != 0 {
			checkGiven(field, fd)
		}
	}
	for _, l := range b.listeners() {
		check(l.field+".fd", l.s.FD)
	}
	for i, d := range b.m.Disks {
		check(indexed("disks", i, "fd"), d.FD)
	}
	for i, c := range b.m.CDDrives {
		check(indexed("cdDrives", i, "fd"), c.FD)
	}
	check("firmware.varsFD", b.m.Firmware.VarsFD)
	if k := b.m.KernelBoot; k != nil {
		check("kernelBoot.kernelFD", k.KernelFD)
		check("kernelBoot.initrdFD", k.InitrdFD)
	}
	for i, n := range b.m.Networks {
		if n.Tap != nil {
			for j, fd := range n.Tap.FDs {
				checkGiven(indexed("networks", i, "tap.fds")+"["+strconv.Itoa(j)+"]", fd)
			}
			for j, fd := range n.Tap.VhostFDs {
				checkGiven(indexed("networks", i, "tap.vhostFDs")+"["+strconv.Itoa(j)+"]", fd)
			}
		}
	}
}

// checkFiles refuses a file that is written by one device and used by another: both would corrupt
// it.
func (b *builder) checkFiles() {
	type use struct {
		field    string
		writable bool
	}
	first := map[string]use{}
	check := func(field, p string, writable bool) {
		if p == "" {
			return
		}
		clean := path.Clean(p)
		other, dup := first[clean]
		switch {
		case !dup:
			first[clean] = use{field, writable}
		case writable || other.writable:
			b.errorf(field, "%q is also used by %s", p, other.field)
		}
	}
	if b.usesUEFI() {
		check("firmware.varsPath", b.m.Firmware.VarsPath, true)
		check("firmware.code", b.firmware.Code, false)
	}
	for i, d := range b.m.Disks {
		check(indexed("disks", i, "file"), d.File, true)
		check(indexed("disks", i, "device"), d.Device, true)
	}
	if b.m.Seed != nil {
		check("seed.file", b.m.Seed.File, false)
	}
	if b.m.AnswerCD != nil {
		check("answerCD.file", b.m.AnswerCD.File, false)
	}
	for i, c := range b.m.CDDrives {
		check(indexed("cdDrives", i, "image"), c.Image, false)
	}
	if k := b.m.KernelBoot; k != nil {
		check("kernelBoot.kernel", k.Kernel, false)
		check("kernelBoot.initrd", k.Initrd, false)
	}
}

// checkOptions checks that IDs are unique, that references resolve, and that every argument fits.
// Only the last depends on the machine; the first two guard against mistakes in this package.
func (b *builder) checkOptions() {
	ids := make(map[string]bool, 64)
	var argument []byte
	for _, g := range b.groups {
		for _, o := range g.Options {
			if o.ID != "" {
				if ids[o.ID] {
					b.errorf(g.Name, "the ID %q is used twice", o.ID)
				}
				ids[o.ID] = true
			}
			if o.bound() <= limits.MaxArgument {
				continue // the common case; saves rendering the argument
			}
			argument = o.appendArgument(argument[:0])
			if n := len(argument); n > limits.MaxArgument {
				b.errorf(g.Name, "the argument of %s has %d bytes, and Linux allows %d", o.Flag, n, limits.MaxArgument)
			}
		}
	}
	for _, g := range b.groups {
		for _, o := range g.Options {
			for _, p := range o.Props {
				if id, ok := refers(p.Value); ok && !ids[id] {
					b.errorf(g.Name, "%s of %s %s refers to %q, which does not exist", p.Key, o.Flag, o.Head, id)
				}
			}
		}
	}
}

// refers returns the ID that a value refers to; false if it is a bus of the machine itself.
func refers(v Value) (string, bool) {
	switch v := v.(type) {
	case Ref:
		return string(v), true
	case Bus:
		device, _, _ := strings.Cut(string(v), ".")
		if device == "pcie" || device == "ide" {
			return "", false
		}
		return device, true
	}
	return "", false
}
