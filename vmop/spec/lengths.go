package spec

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// lengths are how many characters, entries or keys a field may have, by the field's
// path: what the API server refuses beyond is refused before, too. A test compares them
// with the definitions. What has rules of its own, such as names, may be shorter still.
var lengths = map[string]int{
	"spec.image.source":                                         2048,
	"spec.image.repository":                                     1024,
	"spec.image.path":                                           1024,
	"spec.image.version":                                        1024,
	"spec.runnerTemplate.source":                                4096,
	"spec.loggingProperties":                                    65536,
	"spec.virtualMachineClassName":                              253,
	"spec.coreFraction":                                         4,
	"spec.nodeName":                                             253,
	"spec.nodeSelector":                                         256,
	"spec.tolerations":                                          64,
	"spec.topologySpreadConstraints":                            16,
	"spec.priorityClassName":                                    253,
	"spec.permissions":                                          1024,
	"spec.permissions[].user":                                   1024,
	"spec.permissions[].role":                                   1024,
	"spec.permissions[].may":                                    64,
	"spec.pools":                                                256,
	"spec.pools[]":                                              253,
	"spec.cloudInit.metaData":                                   256,
	"spec.provisioning.userData":                                2048, // limits.MaxInlineUserData
	"spec.provisioning.userDataRef.name":                        253,
	"spec.provisioning.sysprepRef.name":                         253,
	"spec.blockDeviceRefs":                                      16, // MaxBlockDevices
	"spec.blockDeviceRefs[].kind":                               63,
	"spec.blockDeviceRefs[].name":                               60, // MaxDiskName
	"spec.vm.cpuModel":                                          4096,
	"spec.vm.rtcBase":                                           64,
	"spec.vm.machineUuid":                                       36,
	"spec.vm.machineType":                                       63,
	"spec.vm.kernelBoot.kernel":                                 4096,
	"spec.vm.kernelBoot.initrd":                                 4096,
	"spec.vm.kernelBoot.args":                                   2047, // limits.MaxKernelArgs
	"spec.vm.networks":                                          64,
	"spec.vm.networks[].tap.device":                             128,
	"spec.vm.networks[].tap.bridge":                             128,
	"spec.vm.networks[].tap.mac":                                32,
	"spec.vm.networks[].user.device":                            128,
	"spec.vm.networks[].user.net":                               64,
	"spec.vm.networks[].user.mac":                               32,
	"spec.vm.networks[].user.hostForwards[].hostAddress":        64,
	"spec.vm.disks":                                             118,
	"spec.vm.disks[].cdrom.image":                               4096,
	"spec.vm.disks[].image.name":                                58,
	"spec.vm.disks[].image.source":                              4096,
	"spec.vm.disks[].image.path":                                1024,
	"spec.vm.disks[].image.checksum":                            135,
	"spec.vm.disks[].image.caBundle":                            65536,
	"spec.vm.disks[].image.storageClassName":                    253,
	"spec.vm.disks[].containerDisk.name":                        58,
	"spec.vm.disks[].containerDisk.image":                       4096,
	"spec.vm.disks[].containerDisk.path":                        1024,
	"spec.vm.disks[].containerDisk.storageClassName":            253,
	"spec.vm.disks[].persistentVolumeClaim.claimName":           253,
	"spec.vm.disks[].volumeClaimTemplate.metadata.name":         253,
	"spec.vm.disks[].volumeClaimTemplate.metadata.labels":       256,
	"spec.vm.disks[].volumeClaimTemplate.metadata.annotations":  256,
	"spec.vm.disks[].volumeClaimTemplate.spec.accessModes":      16,
	"spec.vm.disks[].volumeClaimTemplate.spec.volumeName":       253,
	"spec.vm.disks[].volumeClaimTemplate.spec.storageClassName": 253,
	"spec.vm.shares":                                            8, // limits.MaxShares
	"spec.vm.shares[].tag":                                      31,
	"spec.vm.shares[].hostPath":                                 4096,
	"spec.vm.shares[].persistentVolumeClaim.claimName":          253,
	"spec.vm.shares[].mountPoint":                               4096,
	"spec.vm.usbDevices":                                        8, // limits.MaxUSBDevices
	"spec.vm.usbDevices[].vendor":                               4,
	"spec.vm.usbDevices[].product":                              4,
	"spec.vm.display.loggedInUser":                              256,
	"spec.vm.display.spice.server":                              1024,
	"spec.vm.display.spice.proxyUrl":                            4096,
	"spec.vm.display.spice.streamingVideo":                      64,
	"spec.vm.display.tls.secretName":                            253,

	// Of pools, whose permissions are bounded like those of machines.
	"spec.retention": 64,

	// Of disks and images.
	"spec.dataSource.http.url":                4096,
	"spec.dataSource.http.caBundle":           65536, // limits.MaxCABundle
	"spec.dataSource.containerImage.image":    4096,
	"spec.dataSource.containerImage.path":     1024,
	"spec.dataSource.containerImage.caBundle": 65536,
}

// bound is the limit in [lengths] of a value and of those below it.
type bound struct {
	most   int // -1 if it has no bound of its own
	fields []*bound
	entry  *bound
}

var (
	specBounds   = boundsOf(reflect.TypeFor[VirtualMachineSpec](), "spec")
	poolBounds   = boundsOf(reflect.TypeFor[VmPoolSpec](), "spec")
	sourceBounds = boundsOf(reflect.TypeFor[VirtualDiskSource](), "spec.dataSource")
)

// boundsOf is nil where neither the value nor any below it has a bound, so that what
// is not bounded is not walked through: most of a specification, in each decision.
func boundsOf(t reflect.Type, pattern string) *bound {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	b, bounded := &bound{most: -1}, false
	if most, has := lengths[pattern]; has {
		b.most, bounded = most, true
	}
	switch t.Kind() {
	case reflect.Slice:
		b.entry = boundsOf(t.Elem(), pattern+"[]")
		bounded = bounded || b.entry != nil
	case reflect.Struct:
		if t.PkgPath() != reflect.TypeFor[VirtualMachine]().PkgPath() {
			break
		}
		b.fields = make([]*bound, t.NumField())
		for i := range b.fields {
			b.fields[i] = boundsOf(t.Field(i).Type, pattern+"."+jsonName(t, i))
			bounded = bounded || b.fields[i] != nil
		}
	}
	if !bounded {
		return nil
	}
	return b
}

func jsonName(t reflect.Type, i int) string {
	name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
	return name
}

// exceeded reports whether a value or one below it is longer than its bound. Nearly
// none is, so that this is all that most decisions do: no paths and no messages.
func (b *bound) exceeded(v reflect.Value) bool {
	if b == nil {
		return false
	}
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && b.exceeded(v.Elem())
	case reflect.String:
		return v.Len() > b.most && utf8.RuneCountInString(v.String()) > b.most
	case reflect.Map:
		return v.Len() > b.most
	case reflect.Slice:
		if b.most >= 0 && v.Len() > b.most {
			return true
		}
		for i := range v.Len() {
			if b.entry.exceeded(v.Index(i)) {
				return true
			}
		}
	case reflect.Struct:
		for i, f := range b.fields {
			if f.exceeded(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// validateLengths holds the values of this package's types against the table. Those
// that are too long are not shown.
func validateLengths(v reflect.Value, b *bound, path *field.Path) field.ErrorList {
	if !b.exceeded(v) {
		return nil
	}
	var errs field.ErrorList
	tooLong := func(has int, of string) {
		if b.most >= 0 && has > b.most {
			errs = append(errs, field.Invalid(path, fmt.Sprintf("(%d %s)", has, of), fmt.Sprintf("must have at most %d", b.most)))
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		return validateLengths(v.Elem(), b, path)
	case reflect.String:
		tooLong(utf8.RuneCountInString(v.String()), "characters")
	case reflect.Map:
		tooLong(v.Len(), "keys")
	case reflect.Slice:
		tooLong(v.Len(), "entries")
		for i := range v.Len() {
			errs = append(errs, validateLengths(v.Index(i), b.entry, path.Index(i))...)
		}
	case reflect.Struct:
		for i, f := range b.fields {
			errs = append(errs, validateLengths(v.Field(i), f, path.Child(jsonName(v.Type(), i)))...)
		}
	}
	return errs
}
