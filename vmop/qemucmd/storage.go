package qemucmd

import (
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
)

// cdDrives adds the CD-ROM drives. The image is one tree of block nodes, so that deleting its node
// ([MediumNode]) after a medium change closes the file.
func (b *builder) cdDrives() {
	if n := len(b.m.CDDrives); n > limits.MaxCDs {
		b.errorf("cdDrives", "%d drives: the SATA controller has %d ports", n, limits.MaxCDs)
		return
	}
	for i, c := range b.m.CDDrives {
		field, id := "cdDrives["+strconv.Itoa(i)+"]", CDID(i)
		props := []Prop{{"bus", Bus("ide." + strconv.Itoa(i))}}
		if c.Image != "" {
			b.cdImage(field+".image", i, c)
			props = append(props, Prop{"drive", Ref(MediumNode(id))})
		} else if c.FD != 0 {
			b.errorf(field+".fd", "there is no file that it could be of")
		}
		b.bootIndex(field+".bootIndex", c.BootIndex)
		b.device(field, cdDrive, id, "a CD-ROM drive, whose medium can be changed", b.bootable(props, c.BootIndex)...)
	}
}

func (b *builder) cdImage(field string, i int, c CDDrive) {
	id, image := CDID(i), c.Image
	b.text(field, image)
	driver, location := "file", Prop{"filename", Str(image)}
	if scheme, isURL := limits.URLScheme(image); isURL {
		// The URL is left out of the message: it may contain a password.
		if err := limits.ImageURL(image); err != nil {
			b.errorf(field, "%v", err)
			return
		}
		if c.FD != 0 {
			b.errorf(strings.TrimSuffix(field, ".image")+".fd", "there is no file that it could be of")
		}
		// QEMU compares the scheme with the driver's name byte by byte.
		driver, location = scheme, Prop{"url", Str(scheme + image[len(scheme):])}
	} else {
		location.Value = Str(b.open(File{Purpose: FileCD, Path: image}, c.FD, CDSet(i)))
	}
	b.needBlockDriver(field, driver)
	b.blockdev(field, "raw", MediumNode(id), "the medium in the drive; the format is never probed",
		Prop{"read-only", Bool(true)},
		Prop{"file", Object{
			{"driver", Str(driver)}, {"node-name", Str(id + "-file")}, location, {"read-only", Bool(true)},
		}})
}

// bootable appends the boot index. With a kernel, QEMU gives boot index 0 to the kernel's loader
// and refuses to start if a device has it too, so the devices' indexes move up by one.
func (b *builder) bootable(props []Prop, index *int) []Prop {
	if index == nil {
		return props
	}
	n := *index
	if b.m.KernelBoot != nil {
		n++
	}
	return append(props, Prop{"bootindex", Int(n)})
}

func (b *builder) disks() {
	first, slots := b.diskSlots()
	if n := len(b.m.Disks); n > slots*functions {
		b.errorf("disks", "%d disks: there are PCI addresses for %d", n, slots*functions)
		return
	}
	serials := map[string]string{}
	for i, d := range b.m.Disks {
		field := "disks[" + strconv.Itoa(i) + "]"
		resource, backend := diskFileNode(i), DiskNode(i)
		switch {
		case d.File != "" && d.Device == "":
			b.text(field+".file", d.File)
			name := Prop{"filename", Str(b.open(File{Purpose: FileDisk, Path: d.File, Writable: !d.ReadOnly}, d.FD, i))}
			if d.ReadOnly {
				b.blockdev(field+".file", "file", resource, "the disk's file, locked against one that would write to it",
					name, Prop{"locking", Str("on")}, Prop{"read-only", Bool(true)})
				break
			}
			b.blockdev(field+".file", "file", resource,
				"the disk's file, locked against a second QEMU; space that the guest discards is given back",
				name, Prop{"locking", Str("on")}, Prop{"discard", Str("unmap")})
		case d.Device != "" && d.File == "":
			b.text(field+".device", d.Device)
			last, why := Prop{"discard", Str("unmap")}, "the disk's block device, past the host's page cache; space that the guest discards is given back"
			if d.ReadOnly {
				last, why = Prop{"read-only", Bool(true)}, "the disk's block device, past the host's page cache"
			}
			b.blockdev(field+".device", "host_device", resource, why,
				Prop{"filename", Str(b.open(File{Purpose: FileDisk, Path: d.Device, Writable: !d.ReadOnly}, d.FD, i))}, Prop{"aio", Str("native")},
				Prop{"cache", Object{{"direct", Bool(true)}, {"no-flush", Bool(false)}}}, last)
		default:
			b.errorf(field, "exactly one of file and device must be given")
		}
		format := d.Format
		switch format {
		case "":
			format = DiskFormatRaw
		case DiskFormatRaw, DiskFormatQCOW2:
		default:
			b.errorf(field+".format", "%q must be raw or qcow2", format)
			continue
		}
		content := []Prop{{"file", Ref(resource)}, {"discard", Str("unmap")}}
		if d.ReadOnly {
			content[1] = Prop{"read-only", Bool(true)}
		}
		if format == DiskFormatQCOW2 {
			// Whatever the image's header names: the image was checked before, and has no backing
			// file.
			content = append(content, Prop{"backing", Null{}})
		}
		b.blockdev(field+".format", string(format), backend, "the disk's content", content...)
		props := []Prop{{"drive", Ref(backend)}}
		if d.Serial != "" {
			b.serialNumber(field+".serial", d.Serial, serials)
			props = append(props, Prop{"serial", Str(d.Serial)})
		}
		b.bootIndex(field+".bootIndex", d.BootIndex)
		b.device(field, virtioDisk, DiskID(i), "the disk as the guest sees it",
			spread(first, slots, i, b.bootable(props, d.BootIndex)...)...)
	}
}

// open adds a file and returns the name by which QEMU opens it: its path, or the descriptor set if
// the caller has opened it. The path is noted with the set, for display only.
func (b *builder) open(f File, fd, set int) string {
	name := f.Path
	if fd != 0 {
		name = FDSetName(set)
		f.OpenedAs = name
		b.add(Option{Flag: "-add-fd", Why: "a file or device, which was opened and looked at before", Props: []Prop{
			{"fd", Int(fd)}, {"set", Int(set)}, {"opaque", Str(f.Path)},
		}})
	}
	b.file(f)
	return name
}

// The descriptor sets: a disk's is its position; those of CDs and of the UEFI variables are beyond
// the last disk's.
const (
	cdSets  = 500
	varsSet = 600
)

// FDSetPrefix is the prefix of the names of descriptor sets, which QEMU opens like files.
const FDSetPrefix = "/dev/fdset/"

// FDSetName is the name by which QEMU opens the file of a descriptor set.
func FDSetName(set int) string { return FDSetPrefix + strconv.Itoa(set) }

// CDSet is the descriptor set of the image that the i-th CD drive starts with ([CDDrive.FD]).
func CDSet(i int) int { return cdSets + i }

func (b *builder) serialNumber(field, serial string, seen map[string]string) {
	b.text(field, serial)
	if n := len(serial); n > limits.MaxSerial {
		b.errorf(field, "%q has %d bytes, and virtio transports %d", serial, n, limits.MaxSerial)
	}
	if other, dup := seen[serial]; dup {
		b.errorf(field, "%q is also the serial of %s: the guest could not tell the disks apart", serial, other)
		return
	}
	seen[serial] = strings.TrimSuffix(field, ".serial")
}

func (b *builder) seed() {
	s := b.m.Seed
	if s == nil {
		return
	}
	b.path("seed.file", s.File)
	b.blockdev("seed", "file", "seed-host-resource", "the cloud-init data, which the guest only reads",
		Prop{"filename", Str(s.File)}, Prop{"read-only", Bool(true)})
	b.blockdev("seed", "raw", "seed-backend", "the content of the cloud-init image",
		Prop{"read-only", Bool(true)}, Prop{"file", Ref("seed-host-resource")})
	b.device("seed", virtioDisk, SeedID, "cloud-init finds it by its label; it has an address of its own, behind all disks",
		at(slotSeed, 0, Prop{"drive", Ref("seed-backend")})...)
	b.file(File{Purpose: FileSeed, Path: s.File})
}

// answerCD attaches the CD with the answer files of Windows setup to the last port of the SATA
// controller, which other drives reach last.
func (b *builder) answerCD() {
	c := b.m.AnswerCD
	if c == nil {
		return
	}
	if len(b.m.CDDrives) >= limits.MaxCDs {
		b.errorf("answerCD", "there are %d CD drives besides: the SATA controller has %d ports", len(b.m.CDDrives), limits.MaxCDs)
		return
	}
	b.path("answerCD.file", c.File)
	b.blockdev("answerCD", "raw", MediumNode(AnswerCDID), "the answer files, which the guest only reads",
		Prop{"read-only", Bool(true)},
		Prop{"file", Object{
			{"driver", Str("file")}, {"node-name", Str(AnswerCDID + "-file")}, {"filename", Str(c.File)}, {"read-only", Bool(true)},
		}})
	b.device("answerCD", cdDrive, AnswerCDID, "a CD on which Windows' setup looks for its answers",
		Prop{"bus", Bus("ide." + strconv.Itoa(limits.MaxCDs-1))}, Prop{"drive", Ref(MediumNode(AnswerCDID))})
	b.file(File{Purpose: FileAnswerCD, Path: c.File})
}
