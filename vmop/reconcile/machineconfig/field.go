package machineconfig

import (
	"regexp"
	"strings"
)

// fieldParts maps paths of a runner's configuration to different ones of a manifest, the more
// specific first.
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

// ManifestField returns the path in a machine's manifest of a field of the runner's
// configuration: spec.vm.disks[1] for vm.drives[1]. An ambiguous path stays as it is.
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
