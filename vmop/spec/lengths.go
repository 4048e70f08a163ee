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
	"spec.nodeName":                                             253,
	"spec.nodeSelector":                                         256,
	"spec.permissions":                                          1024,
	"spec.permissions[].user":                                   1024,
	"spec.permissions[].role":                                   1024,
	"spec.permissions[].may":                                    64,
	"spec.pools":                                                256,
	"spec.pools[]":                                              253,
	"spec.cloudInit.metaData":                                   256,
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
	"spec.vm.disks[].persistentVolumeClaim.claimName":           253,
	"spec.vm.disks[].volumeClaimTemplate.metadata.name":         253,
	"spec.vm.disks[].volumeClaimTemplate.metadata.labels":       256,
	"spec.vm.disks[].volumeClaimTemplate.metadata.annotations":  256,
	"spec.vm.disks[].volumeClaimTemplate.spec.accessModes":      16,
	"spec.vm.disks[].volumeClaimTemplate.spec.volumeName":       253,
	"spec.vm.disks[].volumeClaimTemplate.spec.storageClassName": 253,
	"spec.vm.display.loggedInUser":                              256,
	"spec.vm.display.spice.server":                              1024,
	"spec.vm.display.spice.proxyUrl":                            4096,
	"spec.vm.display.spice.streamingVideo":                      64,
	"spec.vm.display.tls.secretName":                            253,
}

// validateLengths walks the types of this package below v and holds them against the
// table. Values that are too long are not shown.
func validateLengths(v reflect.Value, path *field.Path, pattern string) field.ErrorList {
	var errs field.ErrorList
	tooLong := func(has int, of string) {
		if most, bounded := lengths[pattern]; bounded && has > most {
			errs = append(errs, field.Invalid(path, fmt.Sprintf("(%d %s)", has, of), fmt.Sprintf("must have at most %d", most)))
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return validateLengths(v.Elem(), path, pattern)
		}
	case reflect.String:
		if text := v.String(); len(text) > lengths[pattern] {
			tooLong(utf8.RuneCountInString(text), "characters")
		}
	case reflect.Map:
		tooLong(v.Len(), "keys")
	case reflect.Slice:
		tooLong(v.Len(), "entries")
		for i := range v.Len() {
			errs = append(errs, validateLengths(v.Index(i), path.Index(i), pattern+"[]")...)
		}
	case reflect.Struct:
		if v.Type().PkgPath() != reflect.TypeFor[VirtualMachine]().PkgPath() {
			return nil
		}
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			errs = append(errs, validateLengths(v.Field(i), path.Child(name), pattern+"."+name)...)
		}
	}
	return errs
}
