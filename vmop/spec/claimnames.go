package spec

import (
	"strings"
)

// MaxDiskName is how long the name of a [VirtualDisk] may be, as Deckhouse has it: it is
// the value of a label, and part of other names.
const MaxDiskName = 60

// VirtualDiskClaimName returns the name of the volume claim of a [VirtualDisk]. No claim
// that is made for a machine ends so.
func VirtualDiskClaimName(disk string) string { return disk + claimOfDisk }

// DiskOfClaim is the name of the [VirtualDisk] that a volume claim would be the one of
// by its own name; empty if it is none.
func DiskOfClaim(claim string) string {
	if disk, is := strings.CutSuffix(claim, claimOfDisk); is {
		return disk
	}
	return ""
}

const claimOfDisk = "-vd"

// VirtualImageClaimName returns the name of the volume claim of a [VirtualImage]. No
// claim that is made for a machine or a disk ends so.
func VirtualImageClaimName(image string) string { return image + claimOfImage }

// ImageOfClaim is the name of the [VirtualImage] that a volume claim would be the one of
// by its own name; empty if it is none.
func ImageOfClaim(claim string) string {
	if image, is := strings.CutSuffix(claim, claimOfImage); is {
		return image
	}
	return ""
}

const claimOfImage = "-vi"
