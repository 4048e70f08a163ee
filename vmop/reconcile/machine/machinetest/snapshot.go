package machinetest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (w *world) snapshot() (machine.Snapshot, bool) {
	s := machine.Snapshot{
		VM: cached[*spec.VirtualMachine](w, theVM), Settings: w.settings, Now: w.now,
		ConfigMap: cached[*corev1.ConfigMap](w, theConfig),
		Service:   cached[*corev1.Service](w, theLB), Password: "password-" + strconv.Itoa(w.serial), Mentioned: w.mentioned,
	}
	for _, k := range w.keys("pod/") {
		if pod := cached[*corev1.Pod](w, k); pod != nil {
			s.Pods = append(s.Pods, *pod)
		}
	}
	for _, k := range w.keys("exporter/") {
		if pod := cached[*corev1.Pod](w, k); pod != nil {
			s.Pods = append(s.Pods, *pod)
		}
	}
	for _, k := range w.keys("attachment/") {
		if a := cached[*spec.VirtualMachineBlockDeviceAttachment](w, k); a != nil {
			s.Attachments = append(s.Attachments, *a)
		}
	}
	for _, k := range w.keys("secret/") {
		if o := cached[*corev1.Secret](w, k); o != nil && strings.Contains(o.Name, ".user-data") {
			s.UserData = append(s.UserData, *o)
		} else if o != nil && o.Labels[names.LabelComponent] != names.ComponentDisplaySecret {
			s.Certificates = append(s.Certificates, *o)
		} else if o != nil {
			s.DisplaySecrets = append(s.DisplaySecrets, *o)
		}
	}
	for _, k := range w.keys("configmap/") {
		if o := cached[*corev1.ConfigMap](w, k); o != nil && k != theConfig {
			s.UserDataHolders = append(s.UserDataHolders, *o)
		}
	}
	if s.VM != nil {
		// It is not watched, and read when needed.
		s.Certificate = get[*corev1.Secret](w, "certificate/"+machine.NamedCertificate(s.VM, s.Pod()))
		s.Secrets = w.statesOf(machine.NeededSecrets(s.VM, s.Pod()))
	}
	for _, k := range w.keys("claim/") {
		if o := cached[*corev1.PersistentVolumeClaim](w, k); o != nil {
			s.Claims = append(s.Claims, *o)
		}
	}
	if s.VM != nil && w.classes {
		s.Classes = w.classesOf(s.VM, cached[*spec.VirtualMachineClass])
	}
	s.ImageRepository = cached[*corev1.PersistentVolumeClaim](w, "claim/"+names.ImageRepositoryClaim)
	for _, f := range w.failures {
		s.Failures = append(s.Failures, f)
	}
	slices.SortFunc(s.Failures, func(a, b reconcile.Failure) int { return strings.Compare(a.Target.String(), b.Target.String()) })
	return s, s.VM != nil
}

func (w *world) statesOf(needed []machine.NeededSecret) map[string]machine.SecretState {
	out := map[string]machine.SecretState{}
	for _, n := range needed {
		o := get[*corev1.Secret](w, "provisioning/"+n.Name)
		switch {
		case o == nil:
			out[n.Name] = machine.SecretMissing
		case len(n.Types) > 0 && !slices.Contains(n.Types, string(o.Type)):
			out[n.Name] = machine.SecretOfOtherType
		default:
			out[n.Name] = machine.SecretThere
		}
	}
	return out
}

func (w *world) provide(vm *spec.VirtualMachine) {
	vm = vm.DeepCopy()
	vm.Spec.VM.State = spec.StateRunning
	for _, n := range machine.NeededSecrets(vm, nil) {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		if len(n.Types) > 0 {
			o.Type = corev1.SecretType(n.Types[len(n.Types)-1])
		}
		w.put("provisioning/"+n.Name, o)
	}
}

func (w *world) classesOf(vm *spec.VirtualMachine, read func(*world, string) *spec.VirtualMachineClass) []spec.VirtualMachineClass {
	var out []spec.VirtualMachineClass
	for _, k := range w.keys("class/") {
		if c := read(w, k); c != nil && cmp.Or(vm.Spec.VirtualMachineClassName, c.Name) == c.Name && (vm.Spec.VirtualMachineClassName != "" || c.IsDefault()) {
			out = append(out, *c)
		}
	}
	return out
}
