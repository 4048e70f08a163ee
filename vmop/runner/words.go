package runner

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

func (e *Engine) field(path string) string {
	if e.o.Field != nil {
		return e.o.Field(path)
	}
	return path
}

func (e *Engine) networkField(i int) string { return e.field(fmt.Sprintf("vm.network[%d]", i)) }

func (e *Engine) driveField(i int) string { return e.field(fmt.Sprintf("vm.drives[%d]", i)) }

// diskName returns the name of a disk by the id of its device or of the node with its content; the
// id if it has none.
func (e *Engine) diskName(id string) string {
	if name, found := strings.CutPrefix(id, qemucmd.PluggedID("")); found {
		return name
	}
	n := 0
	for _, d := range e.o.Config.Runner.VM.Drives {
		if d.Type == runnerconfig.DriveCD {
			continue
		}
		if d.Name != "" && (id == qemucmd.DiskID(n) || id == qemucmd.DiskNode(n)) {
			return d.Name
		}
		n++
	}
	return id
}

var configured = map[string]string{
	"type": "vm.machineType", "accelerator": "vm.accelerator", "cpu.model": "vm.cpuModel", "memory.size": "vm.maximumRam",
	"firmware": "vm.firmware", "firmware.kind": "vm.firmware", "tpm": "vm.useTpm",
	"panicDevice": "vm.panicDevice",
}

// inConfiguration translates the fields of qemucmd's machine in an error, except those of the host
// and of the disks, whose indexes differ.
func (e *Engine) inConfiguration(err error) error {
	if err == nil || e.o.Field == nil {
		return err
	}
	var errs []error
	for _, p := range qemucmd.Problems(err) {
		field, found := configured[p.Field]
		if name, of := strings.CutPrefix(p.Field, "display."); of && limits.Display(name).Name != "" {
			field, found = "vm."+p.Field, true
		}
		if rest, of := strings.CutPrefix(p.Field, "networks["); of {
			field, found = "vm.network["+rest, true
		}
		if rest, of := strings.CutPrefix(p.Field, "shares["); of {
			field, found = "vm.shares["+rest, true
		}
		if found {
			p = &qemucmd.Error{Field: e.field(field), Message: p.Message}
		}
		errs = append(errs, p)
	}
	if len(errs) == 0 { // of a custom machine type
		return err
	}
	return errors.Join(errs...)
}

// means explains QEMU's last output, with the field concerned and the process that uses a needed
// resource; "" if it is unknown.
func (e *Engine) means(said string) string {
	x, known := qemucmd.Understand(said)
	if !known {
		return ""
	}
	field, message := "", x.Message
	switch vm := &e.o.Config.Runner.VM; {
	case x.Image != "":
		for i, d := range vm.Drives {
			if d.Where() == x.Image {
				field = e.driveField(i)
				if d.Name != "" {
					field += fmt.Sprintf(": disk %q", d.Name)
				}
			}
		}
		if who := e.nameUser(imageUser(x.Image)); x.ImageInUse && who != "" {
			message = strings.Replace(message, "another process", who, 1)
		}
	case x.Field != "":
		field = e.field(x.Field)
		for _, s := range vm.Display.Servers() {
			if x.Field == "vm.display."+string(s.Protocol) {
				field, message = e.portTaken(s, field, message)
			}
		}
		if who := e.nameUser(portUser("tcp", x.Address, x.Port)); x.Port > 0 && who != "" {
			message = strings.Replace(message, "taken or not this user's", "taken by "+who, 1)
		}
	case x.Port > 0:
		for i, n := range vm.Network {
			for j, f := range n.HostForwards {
				if f.HostPort == x.Port && (f.Protocol == x.Protocol || f.Protocol == "") && (f.HostAddress == x.Address || x.Address == "") {
					field = e.field(fmt.Sprintf("vm.network[%d].hostForwards[%d].hostPort", i, j))
				}
			}
		}
		who := e.nameUser(portUser(x.Protocol, x.Address, x.Port))
		switch addresses, err := net.InterfaceAddrs(); {
		case who != "":
			message = strings.Replace(message, "taken or not this user's", "taken by "+who, 1)
		case err == nil && !isOwn(x.Address, addresses):
			field = strings.TrimSuffix(field, ".hostPort") + ".hostAddress"
			message = "no network interface of this host has the address " + x.Address + ": choose another hostAddress"
		}
	}
	if field == "" {
		return message
	}
	return field + ": " + message
}

func (e *Engine) portTaken(s runnerconfig.DisplayServer, field, message string) (string, string) {
	for _, p := range s.Ports {
		if who := e.nameUser(portUser("tcp", s.Address, p.Port)); who != "" {
			return field + strings.TrimPrefix(p.Field, "vm.display."+string(s.Protocol)), "port " + strconv.Itoa(p.Port) + " is taken by " + who + ": choose another one"
		}
	}
	return field, message
}

// isOwn reports whether a program on a host with these interface addresses can listen at an
// address; true for anything but an IP address.
func isOwn(address string, interfaces []net.Addr) bool {
	ip := net.ParseIP(address)
	if ip == nil || ip.IsUnspecified() || ip.IsLoopback() || ip.IsMulticast() {
		return true
	}
	return slices.ContainsFunc(interfaces, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}
