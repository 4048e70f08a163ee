package machine

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// accelerate finds out whether the guest has the processors of its node, and if it
// has not, why and what would give them to it.
func (d *decision) accelerate() {
	set := func(status metav1.ConditionStatus, reason, format string, args ...any) {
		d.accelerated = finding{status: status, reason: reason, message: fmt.Sprintf(format, args...)}
	}
	requested := d.vm.Spec.VM.Accelerator == spec.AcceleratorTCG
	settings := &d.s.Settings
	way := settings.KVMResource != "" || settings.Privileged
	next := "its next pod asks for KVM"
	switch {
	case requested:
		next = "it is going to be emulated in software, as spec.vm.accelerator asks"
	case !way:
		next = "its next start is emulated in software: " + noWay
	}
	switch running := d.pod.state == podRunning && !d.pod.silent() && spec.ConditionIsTrue(d.stored.Conditions, spec.ConditionRunning); {
	case !running:
		set(metav1.ConditionUnknown, spec.ReasonNotRunning, "the guest does not execute; %s", next)
		return
	case d.stored.Accelerator == "":
		set(metav1.ConditionUnknown, spec.ReasonNotReported, "the machine's runner does not say what executes the guest")
		return
	case d.stored.Accelerator == string(spec.AcceleratorKVM):
		d.accelerated.fine(spec.ReasonKVM, "the guest executes on the processors of its node")
		return
	}
	e := d.stored.Emulation
	if e == nil || e.Reason == "" {
		e = &spec.Emulation{Reason: spec.ReasonEmulated} // an older runner
	}
	why := e.Message
	if why == "" {
		why = "its runner does not say why"
	}
	switch e.Reason {
	case spec.ReasonEmulationRequested:
		set(metav1.ConditionFalse, e.Reason, "the guest is emulated in software, as spec.vm.accelerator asks")
		return
	case spec.ReasonNoKVMDevice:
		switch {
		case !way:
			next = noWay
		case settings.KVMResource != "":
			next = fmt.Sprintf("its pod has the resource %s, whose device plugin has to give it /dev/kvm; a pod that is older than the setting has none: start the machine again", settings.KVMResource)
		default:
			next = "load the module kvm_intel or kvm_amd on the node, or choose nodes that have it by spec.nodeSelector; a pod that is older than the setting VMOP_PRIVILEGED has no device: start the machine again"
		}
	case spec.ReasonKVMNotPermitted:
		next = "start the machine again: its next pod " + d.permits()
	case spec.ReasonNoVirtualization:
		next = "switch virtualization on in the node's firmware or, if the node is a virtual machine, in its host; or choose other nodes by spec.nodeSelector"
	default:
		next = "see the log of the pod and of the node's kernel"
	}
	set(metav1.ConditionFalse, e.Reason, "the guest is emulated in software, which is many times slower: %s; %s", strings.TrimRight(why, "."), next)
}

// permits is what the next pod has that this one may lack.
func (d *decision) permits() string {
	if groups := d.stored.DeviceGroups; len(groups) > 0 {
		return fmt.Sprintf("is in the groups %v, which are those of the node's devices", groups)
	}
	return "has the same rights, unless /dev/kvm of the node belongs to a group by then (chgrp kvm, chmod 0660)"
}

// noWay is what to do where no pod has KVM.
const noWay = "no pod has /dev/kvm; the operator's setting VMOP_KVM_RESOURCE (with a device plugin) or VMOP_PRIVILEGED=true gives it to the next"
