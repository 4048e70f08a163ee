package machinetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

const password = "correct-horse"

func inlineUserData(n int) *spec.Provisioning {
	return &spec.Provisioning{Type: spec.ProvisioningUserData, UserData: fmt.Sprintf("#cloud-config\npassword: %s-%d\n", password, n)}
}

func (w *world) author() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return
	}
	keys := slices.DeleteFunc(slices.Concat(w.keys("secret/"), w.keys("configmap/")), func(k string) bool {
		return !strings.Contains(k, ".user-data") || get[reconcile.Object](w, k) == nil
	})
	switch w.choose("author", 6) {
	case 0, 1:
		vm.Spec.Provisioning = inlineUserData(w.choose("text", 3))
	case 2:
		vm.Spec.Provisioning = nil
	case 3:
		if vm.Spec.VM.State == spec.StateRunning {
			vm.Spec.VM.State = spec.StateStopped
		} else {
			vm.Spec.VM.State = spec.StateRunning
		}
		w.decisions++
	case 4:
		if len(keys) > 0 {
			k := keys[w.choose("object", len(keys))]
			if pod := get[*corev1.Pod](w, thePod); pod != nil && w.guests[pod.UID] == nil && strings.HasSuffix(k, "/"+pod.Annotations[names.AnnotationUserData]) {
				return // the runner would report it as missing
			}
			w.put(k, nil)
			w.taken[k] = true
			w.note("%s is deleted", k)
		}
		return
	case 5: // a foreign object, before the operator creates its own
		o := []reconcile.Object{&corev1.Secret{}, &corev1.ConfigMap{Data: map[string]string{"mine": "mine"}}}[w.choose("kind", 2)]
		o.SetName(spec.UserDataSecret(vm.Name))
		if get[reconcile.Object](w, keyOf(o)) == nil {
			w.put(keyOf(o), o)
			w.note("somebody makes %s", keyOf(o))
		}
		return
	}
	vm.Generation++
	w.put(theVM, vm)
	w.note("the machine is %s, with %v", vm.Spec.VM.State, vm.Spec.Provisioning)
}

// deleteHolder verifies the deletion of a ConfigMap for its machine: whatever the operator has
// observed, it is empty, and no pod that is still to start uses the Secret.
func (w *world) deleteHolder(a reconcile.DeleteConfigMap) result {
	cm := get[*corev1.ConfigMap](w, "configmap/"+a.Name)
	if cm == nil {
		return done
	}
	if a.UID == "" || a.ResourceVersion == "" || cm.UID != a.UID || cm.ResourceVersion != a.ResourceVersion {
		return stale
	}
	if len(cm.Data) > 0 || cm.Labels[names.LabelComponent] != names.ComponentUserData {
		w.violated("only what nobody needs goes", "%+v", cm)
	}
	if pod := get[*corev1.Pod](w, thePod); pod != nil && w.guests[pod.UID] == nil && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded &&
		pod.Annotations[names.AnnotationUserData] == a.Name {
		w.violated("only what nobody needs goes", "%s is that of pod %s", a.Name, pod.UID)
	}
	w.put("configmap/"+a.Name, nil)
	return done
}

func (w *world) collectUserData() {
	for _, k := range w.keys("secret/") {
		s := get[*corev1.Secret](w, k)
		if s == nil || len(s.OwnerReferences) == 0 || s.OwnerReferences[0].Kind != names.KindConfigMap {
			continue
		}
		if owner := get[*corev1.ConfigMap](w, "configmap/"+s.OwnerReferences[0].Name); owner == nil || owner.UID != s.OwnerReferences[0].UID {
			w.put(k, nil)
		}
	}
}

func userDataOf(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.Secret != nil && slices.ContainsFunc(s.Secret.Items, func(i corev1.KeyToPath) bool { return strings.HasSuffix(i.Path, "/user-data") }) {
				return s.Secret.Name
			}
		}
	}
	return ""
}

// checkGiven verifies each guest that is to start. It reports whether its user data exists: it
// may have been deleted since the operator observed it.
func (w *world) checkGiven(pod *corev1.Pod) bool {
	if !w.inline {
		return true
	}
	got := ""
	if name := userDataOf(pod); name != "" {
		s := get[*corev1.Secret](w, "secret/"+name)
		// A Secret without the key counts as missing, too: it was deleted before the operator
		// observed it, and another one created with the name.
		if s == nil || len(s.Data[spec.UserDataKey]) == 0 {
			if !w.taken["secret/"+name] && !w.taken["configmap/"+name] {
				w.violated("a guest is given the user data of its manifest", "there is no Secret %s with it", name)
			}
			return false
		}
		got = string(s.Data[spec.UserDataKey])
	}
	if want := w.given[pod.UID]; got != want {
		w.violated("a guest is given the user data of its manifest", "it is given %q instead of %q", got, want)
	}
	return true
}

// checkTold verifies that user data is in its Secret, and nowhere else.
func (w *world) checkTold(s *machine.Snapshot, p *reconcile.Plan) {
	if !w.inline {
		return
	}
	told := []any{p.Statuses, p.Events}
	for _, a := range p.Actions {
		if c, is := a.(reconcile.Create); is {
			if secret, is := c.Object.(*corev1.Secret); is && secret.Labels[names.LabelComponent] == names.ComponentUserData {
				if len(secret.OwnerReferences) != 1 || secret.Immutable == nil || !*secret.Immutable || string(secret.Data[spec.UserDataKey]) != s.VM.Spec.InlineUserData() {
					w.violated("user data is in a Secret of its own", "%+v", secret)
				}
				continue
			}
		}
		told = append(told, a)
	}
	text, err := json.Marshal(told)
	if err != nil {
		w.violated("a status is JSON", "%v", err)
	}
	if strings.Contains(string(text), password) {
		w.violated("user data is in a Secret of its own", "%s", text)
	}
}
