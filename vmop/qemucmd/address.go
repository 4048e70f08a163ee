package qemucmd

import (
	"strconv"

	"github.com/vmop/sdk/vmop/limits"
)

// NewestAddressMap is the newest map of PCI addresses; see [Machine.AddressMap] and
// [AddressMapFor].
const NewestAddressMap = 2

// The maps. What a guest has seen under one of them never changes.
const (
	// mapOriginal fills all of pcie.0, so that nothing can ever be plugged.
	mapOriginal = 1
	// mapPorts has fewer slots for disks, and root ports in one that it frees: what
	// is plugged into a running machine needs a port, and what kinds of devices
	// come later find room behind one. Slot 0x1c is left free.
	mapPorts = 2
)

// The guest's PCI addresses on pcie.0. Slots 1 to 7 are those that VM-Operator's
// machines got implicitly, by the order of their devices (seen with query-pci),
// so that a machine that is taken over keeps the name of its first network
// interface. Slot 0x1f is the chipset's, whose function 0 is always there and announces
// others: QEMU has 2 and 3 of them. What comes into that slot has room in both maps.
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

	maxNICSlots = 9 // 0x07 … 0x0f, where disks do not begin before
	functions   = 8 // per slot
)

// diskSlots are the first slot for disks and the number of them: up to 0x1d in the
// original map, up to 0x1b in the one with ports.
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

// nicSlots is the number of slots for network cards, which is what the disks leave.
func (b *builder) nicSlots() int {
	first, _ := b.diskSlots()
	return min(first-slotNIC, maxNICSlots)
}

// DiskSlotFor is [Machine.FirstDiskSlot] of a machine that VM-Operator made with so
// many network cards and disks: QEMU gave each the next slot. It is 0 for one with
// more than there are slots.
func DiskSlotFor(nics, disks int) int {
	if first := slotNIC + nics; nics > 0 && first+max(disks, 1) <= slotDisk+portsDiskSlots {
		return first
	}
	return 0
}

const portsDiskSlots = limits.MaxDisksBesideShares / functions

// AddressMapFor is the map of a machine that is made now with so many disks: the
// newest, unless only the original one has places for all of them.
func AddressMapFor(disks int) int {
	if disks > portsDiskSlots*functions {
		return mapOriginal
	}
	return NewestAddressMap
}

// slotPorts is where the root ports are, one to a function.
const slotPorts = 0x1d

// The root ports. How many there are is decided once for all: a guest that boots
// finds each of them. Eight fill a slot; [PortID] has them in their order.
const (
	// fileSystemPort is for a file system that is shared with the host.
	fileSystemPort = 6
	// SCSIPort is for the controller of disks that are plugged. It is plugged with
	// the first of them, and there from the next start on.
	SCSIPort = 7

	ports = 8
)

// PortsOf is the number of root ports for what is plugged into machines with a map of
// PCI addresses: [HotPlugPorts] or none.
func PortsOf(addressMap int) int {
	if addressMap < mapPorts {
		return 0
	}
	return HotPlugPorts
}

// checkAddressMap refuses an unknown map: another one would be other hardware for the guest.
func (b *builder) checkAddressMap() {
	if m := b.m.AddressMap; m < 0 || m > NewestAddressMap {
		b.errorf("addressMap", "%d is unknown: this version has maps up to %d", m, NewestAddressMap)
	}
	if s := b.m.FirstDiskSlot; s != 0 && (s <= slotNIC || s >= slotDisk+portsDiskSlots) {
		b.errorf("firstDiskSlot", "%d is no slot for disks: they are from %d to %d", s, slotNIC+1, slotDisk+portsDiskSlots-1)
		b.m.FirstDiskSlot = 0
	}
}

// ports makes the root ports. They ask the firmware for no I/O ports, of which
// there are too few on a PC: no device that can be plugged needs them.
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

// generation makes the device that tells a guest whether it is what it was
// before, or a copy.
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

// at puts the properties of a device behind its address.
func at(slot, function int, props ...Prop) []Prop {
	addr := "0x" + strconv.FormatInt(int64(slot), 16)
	if function > 0 {
		addr += ".0x" + strconv.FormatInt(int64(function), 16)
	}
	return append([]Prop{{"bus", Bus("pcie.0")}, {"addr", Str(addr)}}, props...)
}

// spread returns the address of the i-th device of a range of slots: first the
// slots' functions 0, then their functions 1, and so on. Every function 0
// announces a multifunction device, used or not: it is what the guest sees, and
// must not change when a device joins it in its slot.
func spread(first, slots, i int, props ...Prop) []Prop {
	function := i / slots
	p := at(first+i%slots, function)
	if function == 0 {
		p = append(p, Prop{"multifunction", Bool(true)})
	}
	return append(p, props...)
}
