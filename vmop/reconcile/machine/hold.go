package machine

import (
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d *decision) held() bool { return slices.Contains(d.s.VM.Finalizers, names.FinalizerMachine) }

// hold adds a finalizer to a machine that has a pod, or gets one, so that it stays visible until
// that has ended. A machine that never ran is not held, unless its disks are to be deleted with
// it.
func (d *decision) hold() {
	if d.held() || (d.invalid || !d.wanted()) && !d.pod.exists() && d.pod.state != podOrphaned && !DeletesDisks(d.s.VM) {
		return
	}
	if d.pod.state == podAbsent {
		d.unmade = true // its pod follows when this is observed
	}
	d.holds = d.setFinalizers(append(slices.Clone(d.s.VM.Finalizers), names.FinalizerMachine), false, &d.configuration)
}

func (d *decision) release() {
	if !d.held() {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(d.s.VM.Finalizers), func(f string) bool { return f == names.FinalizerMachine })
	d.released = d.setFinalizers(rest, true, &d.running)
}

func (d *decision) setFinalizers(all []string, releases bool, about *finding) bool {
	return d.do(reconcile.SetFinalizers{
		Kind: names.KindVirtualMachine, Name: d.vm.Name, UID: d.s.VM.UID, ResourceVersion: d.s.VM.ResourceVersion,
		Finalizers: all, Releases: releases,
	}, about)
}

// DeletesDisks reports whether a machine that is deleted now takes its disks with it.
func DeletesDisks(vm *spec.VirtualMachine) bool {
	return vm.Spec.DeletionPolicy == spec.DeletionDelete && !slices.Contains(vm.Finalizers, metav1.FinalizerOrphanDependents)
}
