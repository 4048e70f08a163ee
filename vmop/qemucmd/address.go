package qemucmd

import (
	"strconv"

	"github.com/vmop/sdk/vmop/limits"
)

// NewestAddressMap is the newest map of PCI addresses; see [Machine.AddressMap] and
// [AddressMapFor].
const NewestAddressMap = 2

// The maps. An existing map never changes: guests depend on the addresses.
const (
	// mapOriginal fills all of pcie.0: nothing can be hot-plugged.
	mapOriginal = 1
	// mapPorts gives one of the disks' slots to root ports, for hot-plugged devices and for kinds
	// of devices to come. Slot 0x1c is left free.
	mapPorts = 2
)

// PCI addresses on pcie.0. Slots 1 to 7 are those that VM-Operator's machines got implicitly from
// the order of their devices (query-pci), so that a machine taken over keeps the name of its first
// network interface. Slot 0x1f is the chipset's, a multifunction device of which QEMU uses
// functions 0, 2 and 3.
const (
	slotBalloon = 0x1
	slotSerial  = 0x2
	slotUSB     = 0x3
	slotRNG     = 0x4
	slotVideo   = 0x5
	slotSound   = 0x6
	slotNIC     = 0x7
	slotDisk    = 0x10
	slotSeed    = 0x1e
	slotChipset = 0x1f

	functionPanic = 7 // of slotChipset

	maxNICSlots = 9 // 0x07 … 0x0f, if the disks do not begin before
	functions   = 8 // per slot
)

func (b *builder) diskSlots() (first, n int) {
	first, n = slotDisk, 14
	if b.m.AddressMap >= mapPorts {
		n = portsDiskSlots
	}
	if s := b.m.FirstDiskSlot; s != 0 {
		first, n = s, slotDisk+n-s
	}
	return first, n
}

func (b *builder) nicSlots() int {
	first, _ := b.diskSlots()
	return min(first-slotNIC, maxNICSlots)
}

// DiskSlotFor returns the [Machine.FirstDiskSlot] of a VM-Operator machine with so many network
// cards and disks: QEMU gave each the next slot. It is 0 if there are more than there are slots.
func DiskSlotFor(nics, disks int) int {
	if first := slotNIC + nics; nics > 0 && first+max(disks, 1) <= slotDisk+portsDiskSlots {
		return first
	}
	return 0
}

const portsDiskSlots = limits.MaxDisksBesideShares / functions

// AddressMapFor returns the map for a new machine with so many disks: the newest, unless only the
// original one has addresses for all of them.
func AddressMapFor(disks int) int {
	if disks > portsDiskSlots*functions {
		return mapOriginal
	}
	return NewestAddressMap
}

const slotPorts = 0x1d

// The root ports. Their number is fixed, because a guest sees each of them at boot. Eight fill a
// slot; [PortID] has them in this order.
const (
	fileSystemPort = 6
	// SCSIPort is for the SCSI controller of hot-plugged disks. It is plugged with the first of
	// them, and present at every start from then on.
	SCSIPort = 7

	ports = 8
)

// PortsOf returns the number of root ports for hot-plugged devices in machines with an address map:
// [HotPlugPorts] or 0.
func PortsOf(addressMap int) int {
	if addressMap < mapPorts {
		return 0
	}
	return HotPlugPorts
}

// checkAddressMap refuses an unknown map rather than fall back to another, which would change the
// guest's hardware.
func (b *builder) checkAddressMap() {
	if m := b.m.AddressMap; m < 0 || m > NewestAddressMap {
		b.errorf("addressMap", "%d is unknown: this version has maps up to %d", m, NewestAddressMap)
	}
	if s := b.m.FirstDiskSlot; s != 0 && (s <= slotNIC || s >= slotDisk+portsDiskSlots) {
		b.errorf("firstDiskSlot", "%d is no slot for disks: they are from %d to %d", s, slotNIC+1, slotDisk+portsDiskSlots-1)
		b.m.FirstDiskSlot = 0
	}
}

// ports adds the root ports, without I/O ports: a PC has too few, and no device that can be plugged
// needs them.
func (b *builder) ports() {
	if b.m.AddressMap < mapPorts {
		return
	}
	for i := range ports {
		var props []Prop
		if i == 0 {
			props = append(props, Prop{"multifunction", Bool(true)})
		}
		b.device("addressMap", "pcie-root-port", PortID(i), "a place for a device that comes later: nothing can be plugged into pcie.0 itself",
			at(slotPorts, i, append(props, Prop{"chassis", Int(i + 1)}, Prop{"io-reserve", Int(0)})...)...)
	}
}

func (b *builder) generation() {
	if b.m.AddressMap < mapPorts {
		return
	}
	id := b.m.GenerationID
	if id == "" {
		id = stableGeneration(b.m.UUID)
	}
	b.invalid("generationID", id, limits.UUID(id))
	b.device("addressMap", "vmgenid", GenerationDeviceID, "a guest that is started from a copy of another one's state finds another number here, and makes new keys",
		Prop{"guid", Str(id)})
}

func at(slot, function int, props ...Prop) []Prop {
	addr := "0x" + strconv.FormatInt(int64(slot), 16)
	if function > 0 {
		addr += ".0x" + strconv.FormatInt(int64(function), 16)
	}
	return append([]Prop{{"bus", Bus("pcie.0")}, {"addr", Str(addr)}}, props...)
}

// spread returns the address of the i-th device in a range of slots: first function 0 of every
// slot, then function 1, and so on. Every function 0 announces a multifunction device, used or not,
// because that must not change when a device is added to its slot.
func spread(first, slots, i int, props ...Prop) []Prop {
	function := i / slots
	p := at(first+i%slots, function)
	if function == 0 {
		p = append(p, Prop{"multifunction", Bool(true)})
	}
	return append(p, props...)
}
