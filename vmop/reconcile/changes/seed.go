package changes

import (
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/spec"
)

const metaData = "spec.cloudInit.metaData"

// seedDocuments are what cloud-init reads once for each instance-id, and how it handles a changed
// one for a guest that is set up already.
var seedDocuments = []struct{ field, does string }{
	{"spec.cloudInit.userData", ofUserData},
	{"spec.cloudInit.userDataFrom", ofUserData},
	{"spec.provisioning.userData", ofUserData},
	{"spec.provisioning.userDataRef", ofUserData},
	{"spec.cloudInit.networkConfig", ofNetwork},
	{"spec.cloudInit.networkConfigFrom", ofNetwork},
}

const (
	// A module of cloud-init that had nothing to do has not run, and may at the next boot:
	// observed for write_files with 22.4.
	ofUserData = "acts only on what is for each boot, such as bootcmd, and perhaps on sections that are new"
	ofNetwork  = "keeps the network that it has set up"
	anew       = "everything anew, with other SSH host keys"
)

// OfKnownInstance returns how a changed seed document, at the path of its field, affects a guest
// that cloud-init has set up under the machine's instance-id: hardly at all; and what would apply
// it. It is empty for other fields.
func OfKnownInstance(vm *spec.VirtualMachine, path string) string {
	if vm == nil || !vm.Spec.HasSeed() {
		return ""
	}
	for _, document := range seedDocuments {
		if !isOrContains(document.field, path) && !isOrContains(path, document.field) {
			continue
		}
		apply := "cloud-init clean in the guest "
		if vm.Spec.CloudInit != nil { // spec.provisioning has no meta-data
			apply = "another instance-id in the meta-data, or cloud-init clean in the guest, "
		}
		return "cloud-init in a guest that has seen the instance-id " + document.does + "; " + apply + "has it set up " + anew
	}
	return ""
}

// seed returns the effect of a change of what cloud-init reads, besides that it waits for a
// restart.
func (d *differ) seed(at *location, pattern string) string {
	switch {
	case !d.old.Spec.HasSeed() || !d.new.Spec.HasSeed():
		return "" // the guest gets its first seed, or loses it
	case manifest.InstanceID(d.old) == manifest.InstanceID(d.new):
		return OfKnownInstance(d.new, pattern)
	case pattern == metaData, pattern == metaData+"[]" && at.name == manifest.InstanceIDKey:
		return "cloud-init sets up " + anew
	}
	return ""
}
