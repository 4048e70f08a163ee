package machine

import (
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// makeUserData ensures the Secret with the user data of the manifest, and before it the ConfigMap
// that owns it. A running machine gets what the next start needs, so that the start is not
// delayed.
func (d *decision) makeUserData() {
	if d.vm.Spec.InlineUserData() == "" {
		return
	}
	u := objects.PickUserData(d.vm, d.s.UserData, d.s.UserDataHolders)
	if d.userData = u.Secret; u.Secret != "" || !d.wanted() {
		return
	}
	d.unmade = true
	switch {
	case u.Free == "":
		first := spec.UserDataSecret(d.vm.Name)
		d.wakeAt(d.s.Now.Add(nameRetry)) // they are in no cache
		d.configuration.setProblem(spec.ReasonNameTaken, named(names.KindSecret, first),
			"there are Secrets or ConfigMaps of all names for the user data of spec.provisioning, from %s on; delete those that are not used", first)
	case u.Holder == nil:
		d.do(reconcile.Create{Object: objects.UserDataHolder(d.vm, d.s.Settings, u.Free)}, &d.configuration)
	default:
		d.do(reconcile.Create{Object: objects.UserDataSecret(d.vm, d.s.Settings, u.Holder)}, &d.configuration)
	}
}

// dropUserData deletes user data that neither the machine nor its pod needs any more, also of a
// former machine of the name: empty ConfigMaps, which take their Secrets with them.
func (d *decision) dropUserData() {
	if len(d.s.UserDataHolders) == 0 {
		return
	}
	kept := ""
	if u := objects.PickUserData(d.vm, d.s.UserData, d.s.UserDataHolders); u.Holder != nil {
		kept = u.Holder.Name
	}
	used := map[string]bool{}
	for i := range d.s.Pods {
		if pod := &d.s.Pods[i]; !finished(pod) {
			used[pod.Annotations[names.AnnotationUserData]] = true
		}
	}
	for i := range d.s.UserDataHolders {
		h := &d.s.UserDataHolders[i]
		if h.DeletionTimestamp != nil || h.Name == kept || used[h.Name] || !objects.IsUserDataHolder(d.vm.Name, h) ||
			len(h.OwnerReferences) > 0 && !d.owned(h) {
			continue
		}
		d.do(reconcile.DeleteConfigMap{Name: h.Name, UID: h.UID, ResourceVersion: h.ResourceVersion}, &d.configuration)
	}
}
