package machinetest

import (
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func userDataFrom(secret string) *spec.CloudInit {
	return &spec.CloudInit{UserDataFrom: &spec.CloudInitSource{SecretRef: spec.SecretKeyReference{Name: secret}}}
}

// newContent changes the Secret with the user data that the manifest names, which the runner
// detects.
func (w *world) newContent(vm *spec.VirtualMachine) {
	if vm.Spec.CloudInit == nil || vm.Spec.CloudInit.UserDataFrom == nil {
		return
	}
	w.content++
	w.note("the Secret has the content %d", w.content)
	for _, key := range w.keys("pod/") {
		pod := get[*corev1.Pod](w, key)
		if pod == nil || w.guests[pod.UID] == nil || w.dead[pod.Spec.NodeName] {
			continue
		}
		if g := w.guests[pod.UID]; g.stage > 1 {
			g.stage = 2 // the third report then, which succeeds
			w.runnerReports(g)
		}
	}
}
