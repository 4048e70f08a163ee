package qemucmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
)

type builder struct {
	m Machine
	h Host

	accel       Accelerator
	machineType MachineType
	cpu         topology
	firmware    FirmwareImage // Code "" with BIOS
	group       string        // the group that is being built

	groups  []Group
	files   []owned[File]
	sockets []owned[NamedSocket]
	helpers []owned[Helper]
	errs    []error

	warnings []string
}

// owned is a file, socket or helper with the group of options that needs it.
type owned[T any] struct {
	group string
	item  T
}

func (b *builder) add(options ...Option) {
	if n := len(b.groups); n > 0 && b.groups[n-1].Name == b.group {
		b.groups[n-1].Options = append(b.groups[n-1].Options, options...)
		return
	}
	b.groups = append(b.groups, Group{Name: b.group, Options: options})
}

// device adds a -device option. field is the field that asks for it, for the error if QEMU does not
// offer the device.
func (b *builder) device(field, driver, id, why string, props ...Prop) {
	if _, found := slices.BinarySearch(b.h.Devices, driver); !found && !slices.Contains(b.h.Devices, driver) {
		b.errorf(field, "%s does not offer the device %q%s", b.h.QEMU, driver, moduleHint(driver))
	}
	b.add(Option{
		Flag: "-device", HeadKey: "driver", Head: driver, ID: id, Props: props,
		JSON: b.h.JSONDevice, Why: why,
	})
}

// moduleHint names the package that is often missing: distributions split QEMU into modules.
func moduleHint(driver string) string {
	switch {
	case strings.HasPrefix(driver, "virtio-vga"):
		return "; its module (hw-display-virtio-vga) is probably not installed"
	case driver == "usb-host":
		return "; its module (hw-usb-host) is probably not installed"
	case driver == "usb-redir":
		return "; its module (hw-usb-redirect) is probably not installed"
	}
	return ""
}

func (b *builder) blockdev(field, driver, node, why string, props ...Prop) {
	b.needBlockDriver(field, driver)
	b.add(Option{
		Flag: "-blockdev", HeadKey: "driver", Head: driver, ID: node, Props: props,
		JSON: true, Why: why,
	})
}

func (b *builder) needBlockDriver(field, driver string) {
	if slices.Contains(b.h.BlockDrivers, driver) {
		return
	}
	hint := ""
	if driver == "http" || driver == "https" {
		hint = "; install QEMU's curl block driver (Debian: qemu-block-extra, Fedora: qemu-block-curl, Alpine: qemu-block-curl) or download the image"
	}
	b.errorf(field, "%s does not offer the block driver %q%s", b.h.QEMU, driver, hint)
}

func (b *builder) object(qomType, id, why string, props ...Prop) {
	b.add(Option{
		Flag: "-object", HeadKey: "qom-type", Head: qomType, ID: id, Props: props,
		JSON: true, Why: why,
	})
}

// chardev adds a -chardev option, which has no JSON form in QEMU.
func (b *builder) chardev(backend, id, why string, props ...Prop) {
	b.add(Option{
		Flag: "-chardev", HeadKey: "backend", Head: backend, ID: id, Props: props,
		Why: why,
	})
}

func (b *builder) file(f File) { b.files = append(b.files, owned[File]{b.group, f}) }

func (b *builder) socket(purpose SocketPurpose, s Socket) {
	b.sockets = append(b.sockets, owned[NamedSocket]{b.group, NamedSocket{purpose, s}})
}

func (b *builder) helper(h Helper) { b.helpers = append(b.helpers, owned[Helper]{b.group, h}) }

// topology is the complete layout of the CPU slots: maximum is the product of the others.
type topology struct{ maximum, sockets, dies, cores, threads int }

func (b *builder) errorf(field, format string, args ...any) {
	b.errs = append(b.errs, &Error{Field: field, Message: fmt.Sprintf(format, args...)})
}

// invalid records problem, unless nil, and reports whether it was nil.
func (b *builder) invalid(field string, value any, problem error) bool {
	if problem == nil {
		return true
	}
	if s, ok := value.(string); ok {
		value = strconv.Quote(s)
	}
	b.errorf(field, "%v %v", value, problem)
	return false
}

// text checks that s reaches QEMU and comes back over QMP unchanged.
func (b *builder) text(field, s string) { b.invalid(field, s, limits.Text(s)) }

func (b *builder) path(field, p string) {
	if p == "" {
		b.errorf(field, "a path must be given")
		return
	}
	b.text(field, p)
}

func (b *builder) bootIndex(field string, index *int) {
	if index != nil {
		b.invalid(field, *index, limits.BootIndex(int64(*index)))
	}
}
