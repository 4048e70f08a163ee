package qemucmd

import "strconv"

// The guest's PCI addresses on pcie.0. Slots 1 to 7 are those that VM-Operator's
// machines got implicitly, by the order of their devices (seen with query-pci),
// so that a machine that is taken over keeps the name of its first network
// interface. Slot 0x1f is the chipset's.
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

	nicSlots  = 9  // 0x07 … 0x0f
	diskSlots = 14 // 0x10 … 0x1d
	functions = 8  // per slot

	maxNICs  = nicSlots * functions
	maxDisks = diskSlots * functions
)

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
