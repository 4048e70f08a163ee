package machineconfig

import (
	"regexp"
	"strings"
)

// fieldParts are what a runner's configuration calls otherwise than a manifest, the
// more particular first.
var fieldParts = []struct{ config, manifest string }{
	{`^vm\.network(\[\d+\])\.hostForwards`, "vm.networks$1.user.hostForwards"},
	{`^vm\.network(\[\d+\])\.net$`, "vm.networks$1.user.net"},
	{`^vm\.network(\[\d+\])\.bridge$`, "vm.networks$1.tap.bridge"},
	{`^vm\.network\b`, "vm.networks"},
	{`^vm\.drives\b`, "vm.disks"},
	{`^vm\.uuid$`, "vm.machineUuid"},
	{`^cloudInit\.(userData|metaData|networkConfig|metaDataFrom|networkConfigFrom)\b`, "cloudInit.$1"},
	{`^cloudInit\.userDataText$`, "provisioning.userData"},
}

// ManifestField is the path in a machine's manifest of a field of the runner's
// configuration that was made of it: spec.vm.disks[1] of vm.drives[1]. What may have been
// made of one field or another stays as it is.
func ManifestField(path string) string {
	for _, p := range fieldParts {
		if re := regexp.MustCompile(p.config); re.MatchString(path) {
			return "spec." + re.ReplaceAllString(path, p.manifest)
		}
	}
	if !strings.HasPrefix(path, "vm.") {
		return path
	}
	return "spec." + path
}
