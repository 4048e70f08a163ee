package spec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
)

func validateShares(m *Machine, vmName string, machine spot) field.ErrorList {
	path := machine.Child("shares")
	if len(m.Shares) == 0 {
		return nil
	}
	var errs field.ErrorList
	if n := len(m.Shares); n > limits.MaxShares {
		errs = append(errs, tooManyAt(path, n, limits.MaxShares))
	}
	disks := map[string]spot{}
	for i := range m.Disks {
		at := machine.Child("disks").Index(i)
		if m.Disks[i].Template() != nil {
			disks[DiskClaimName(vmName, DiskName(m.Disks, i))] = at
		}
		if c := m.Disks[i].PersistentVolumeClaim; c != nil {
			disks[c.ClaimName] = at
		}
	}
	tags, mounted := map[string]spot{}, map[string]spot{}
	once := func(seen map[string]spot, value string, at spot, what string) {
		if other, ok := seen[value]; ok {
			errs = append(errs, invalidAt(at, value, "is also "+what+" "+other.String()))
			return
		}
		seen[value] = at
	}
	for i := range m.Shares {
		s, at := &m.Shares[i], path.Index(i)
		if s.Tag == "" {
			errs = append(errs, requiredAt(at.Child("tag"), "the guest mounts the folder by it, such as src"))
		} else {
			errs = append(errs, limited(at.Child("tag"), s.Tag, limits.ShareTag(s.Tag))...)
			once(tags, s.Tag, at.Child("tag"), "the tag of")
		}
		errs = append(errs, oneOf(at.Child("protocol"), s.Protocol, ShareVirtioFS, Share9P)...)
		if s.MountPoint != "" {
			errs = append(errs, limited(at.Child("mountPoint"), s.MountPoint, limits.MountPoint(s.MountPoint))...)
		}
		if s.Tag != "" {
			once(mounted, s.MountedAt(), at.Child("mountPoint"), "the place of")
		}
		const rule = "give exactly one of hostPath and persistentVolumeClaim; there "
		c := s.PersistentVolumeClaim
		switch {
		case s.HostPath == "" && c == nil:
			errs = append(errs, requiredAt(at, rule+"is none"))
		case s.HostPath != "" && c != nil:
			errs = append(errs, forbiddenAt(at, rule+"are both"))
		case s.HostPath != "":
			errs = append(errs, validateLine(s.HostPath, at.Child("hostPath"))...)
		default:
			at := at.Child("persistentVolumeClaim", "claimName")
			switch other, isDisk := disks[c.ClaimName]; {
			case c.ClaimName == "":
				errs = append(errs, requiredAt(at, "name an existing volume claim"))
			case c.ClaimName == RunnerDataClaimName(vmName):
				errs = append(errs, invalidAt(at, c.ClaimName, "is reserved for the machine's own data"))
			case isDisk:
				errs = append(errs, invalidAt(at, c.ClaimName, "is the same volume claim as that of "+other.String()))
			default:
				errs = append(errs, invalid(at, c.ClaimName, isSubdomain)...)
			}
		}
	}
	return errs
}
