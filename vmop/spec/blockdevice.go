package spec

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
)

// MaxBlockDevices is how many disks a machine may refer to, as Deckhouse has it.
const MaxBlockDevices = 16

// Claim is the name of the volume claim that the disk or image is in.
func (r *BlockDeviceRef) Claim() string {
	if r.IsImage() {
		return VirtualImageClaimName(r.Name)
	}
	return VirtualDiskClaimName(r.Name)
}

// IsImage reports whether it is an image, which is only read: several machines may have
// it at a time.
func (r *BlockDeviceRef) IsImage() bool { return r.Kind == KindImage }

// BlockDeviceBootIndexes are the boot indexes of a machine's references, one for each: of
// those with a bootOrder that, counted from 0; of all others the numbers behind those
// that are given, in the order of the list. It is nil where nothing is given, neither
// here nor by vm.disks: the order of the lists counts then.
func BlockDeviceBootIndexes(s *VirtualMachineSpec) []*int32 {
	if s == nil {
		return nil
	}
	greatest, any := int32(-1), false
	given := func(index *int32) {
		if index != nil {
			greatest, any = max(greatest, *index), true
		}
	}
	out := make([]*int32, len(s.BlockDeviceRefs))
	for i := range s.BlockDeviceRefs {
		if o := s.BlockDeviceRefs[i].BootOrder; o != nil && *o >= 1 {
			out[i] = new(*o - 1)
			given(out[i])
		}
	}
	for i := range s.VM.Disks {
		given(s.VM.Disks[i].Bootindex)
	}
	if !any {
		return nil
	}
	for i := range out {
		if out[i] == nil && greatest < limits.MaxBootIndex {
			greatest++
			out[i] = new(greatest)
		}
	}
	return out
}

func validateBlockDevices(s *VirtualMachineSpec, path spot) field.ErrorList {
	if len(s.BlockDeviceRefs) == 0 {
		return nil
	}
	var errs field.ErrorList
	disks, cds := 0, 0
	claims, boot := map[string]string{}, map[int32]string{}
	for i := range s.VM.Disks {
		d, at := &s.VM.Disks[i], "spec.vm.disks["+strconv.Itoa(i)+"]"
		if d.Cdrom != nil {
			cds++
		}
		if c := d.PersistentVolumeClaim; c != nil {
			claims[c.ClaimName] = at
		}
		if d.Bootindex != nil {
			boot[*d.Bootindex] = at
		}
	}
	for i := range s.VM.Shares {
		if c := s.VM.Shares[i].PersistentVolumeClaim; c != nil {
			claims[c.ClaimName] = "spec.vm.shares[" + strconv.Itoa(i) + "]"
		}
	}
	disks = len(s.VM.Disks) - cds + len(s.BlockDeviceRefs)
	if n := len(s.BlockDeviceRefs); n > MaxBlockDevices {
		errs = append(errs, tooManyAt(path, n, MaxBlockDevices))
	} else if disks > limits.MaxDisks {
		errs = append(errs, tooManyAt(path, disks, limits.MaxDisks))
	}
	for i := range s.BlockDeviceRefs {
		r, at := &s.BlockDeviceRefs[i], path.Index(i)
		if bad := validateDiskReference(r.Kind, r.Name, at); len(bad) > 0 {
			errs = append(errs, bad...)
		} else {
			if other, twice := claims[r.Claim()]; twice {
				errs = append(errs, invalidAt(at.Child("name"), r.Name, "is the same disk as that of "+other))
			}
			claims[r.Claim()] = at.String()
		}
		if r.BootOrder == nil {
			continue
		}
		at = at.Child("bootOrder")
		switch order := *r.BootOrder; {
		case order < 1:
			errs = append(errs, invalidAt(at, order, "must be at least 1"))
		case boot[order-1] != "":
			errs = append(errs, invalidAt(at, order, "is also that of "+boot[order-1]+" (a bootOrder is a bootindex counted from 1); QEMU takes each only once"))
		default:
			boot[order-1] = path.Index(i).String()
		}
	}
	return errs
}

func validateDiskReference(kind, name string, at spot) field.ErrorList {
	var errs field.ErrorList
	switch {
	case kind == "":
		errs = append(errs, requiredAt(at.Child("kind"), names.KindDisk+" or "+names.KindImage))
	case kind == names.KindClusterImage:
		errs = append(errs, invalidAt(at.Child("kind"), kind, "is of no namespace: make a VirtualImage of it, or a VirtualDisk (dataSource.objectRef), and name that"))
	default:
		errs = append(errs, oneOf(at.Child("kind"), kind, names.KindDisk, names.KindImage)...)
	}
	return append(errs, validateDiskName(name, at.Child("name"))...)
}

func validateSourceReference(kind, name string, at spot) field.ErrorList {
	switch kind {
	case "":
		return append(field.ErrorList{requiredAt(at.Child("kind"), names.KindDisk+", "+names.KindImage+", "+names.KindClusterImage+" or "+names.KindVolumeSnapshot)}, validateDiskName(name, at.Child("name"))...)
	case names.KindVolumeSnapshot: // which others name as they like
		if name == "" {
			return field.ErrorList{requiredAt(at.Child("name"), "the name of the "+kind)}
		}
		return invalid(at.Child("name"), name, isSubdomain)
	}
	errs := oneOf(at.Child("kind"), kind, names.KindDisk, names.KindImage, names.KindClusterImage, names.KindVolumeSnapshot)
	return append(errs, validateDiskName(name, at.Child("name"))...)
}

func validateDiskName(name string, at spot) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{requiredAt(at, "the name of the disk or image")}
	case len(name) > MaxDiskName:
		return field.ErrorList{tooLongAt(at, name, MaxDiskName)}
	}
	return invalid(at, name, isSubdomain)
}
