package machine

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// accelerate determines whether the guest uses hardware virtualization, and if not, why and what
// would enable it.
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
	switch running := d.pod.state == podRunning && spec.ConditionIsTrue(d.stored.Conditions, spec.ConditionRunning); {
	case d.lost():
		set(metav1.ConditionUnknown, spec.ReasonNodeLost, "node %s does not report, and the guest may execute there; %s", d.pod.pod.Spec.NodeName, next)
		return
	case !running:
		set(metav1.ConditionUnknown, spec.ReasonNotRunning, "the guest does not execute; %s", next)
		return
	case d.stored.Accelerator == "":
		set(metav1.ConditionUnknown, spec.ReasonNotReported, "the machine's runner does not say what executes the guest")
		return
	case d.stored.Accelerator == string(spec.AcceleratorKVM):
		d.accelerated.setTrue(spec.ReasonKVM, "the guest executes on the processors of its node")
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
			next = fmt.Sprintf("%s has to give it to the pod; start the machine again if its pod is older than the setting", settings.KVMResource)
		default:
			next = "load kvm_intel or kvm_amd on the node, or choose others by spec.nodeSelector, and start the machine again"
		}
	case spec.ReasonKVMNotPermitted:
		next = d.permits()
	case spec.ReasonNoVirtualization:
		next = "switch virtualization on in the node's firmware or host, or choose other nodes by spec.nodeSelector"
	default:
		next = "see the log of the pod and of the node's kernel"
	}
	// status.emulation holds all of it, with advice for a single host.
	why, _, _ = strings.Cut(why, ";")
	set(metav1.ConditionFalse, e.Reason, "the guest is emulated in software: %s; %s", strings.TrimRight(why, "."), next)
}

func (d *decision) permits() string {
	if groups := d.stored.DeviceGroups; len(groups) > 0 {
		return fmt.Sprintf("start the machine again: its next pod is in the groups %v", groups)
	}
	return "give the node's /dev/kvm to a group (chgrp kvm, chmod 0660), and start the machine again"
}

const noWay = "the operator's setting VMOP_KVM_RESOURCE or VMOP_PRIVILEGED=true gives pods /dev/kvm"
