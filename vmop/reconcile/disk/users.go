package disk

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxAttached is how many machines the definition permits in a status.
const maxAttached = 64

func (d *decision) attachments() {
	d.next.AttachedToVirtualMachines = nil
	copies := d.copies()
	for _, m := range d.users() {
		if !slices.Contains(copies, m) && len(d.next.AttachedToVirtualMachines) < maxAttached {
			d.next.AttachedToVirtualMachines = append(d.next.AttachedToVirtualMachines, spec.AttachedVirtualMachine{Name: m})
		}
	}
	if all := d.users(); len(all) > len(copies) {
		d.condition(conditions.DiskInUse, metav1.ConditionTrue, conditions.ReasonDiskAttached, d.usedText, few(all))
		return
	}
	if len(copies) > 0 {
		d.condition(conditions.DiskInUse, metav1.ConditionTrue, conditions.ReasonDiskCopied, "it is being copied by pod %s%s", few(copies), d.copyText)
		return
	}
	d.condition(conditions.DiskInUse, metav1.ConditionFalse, conditions.ReasonDiskNotInUse, "%s", d.unusedText)
}

func (d *decision) users() []string {
	out := append(slices.Clone(d.s.Machines), d.pods()...)
	slices.Sort(out)
	return slices.Compact(out)
}

func (d *decision) pods() []string { return unfinished(d.s.Users) }

func unfinished(pods []corev1.Pod) []string {
	var out []string
	for i := range pods {
		if p := &pods[i]; !finished(p) {
			// The user is the machine that it is exported to.
			out = append(out, cmp.Or(objects.ExportsFor(p), p.Name))
		}
	}
	slices.Sort(out)
	return out
}

func (d *decision) copies() []string {
	var out []string
	for i := range d.s.Users {
		if p := &d.s.Users[i]; !finished(p) && (p.Labels[names.LabelDisk] != "" || p.Labels[names.LabelImage] != "" || p.Labels[names.LabelImageServer] != "") && !slices.Contains(d.s.Machines, p.Name) {
			out = append(out, p.Name)
		}
	}
	return out
}

func few(all []string) string {
	const most = 5
	if len(all) > most {
		return fmt.Sprintf("%s and %d others", strings.Join(all[:most], ", "), len(all)-most)
	}
	return strings.Join(all, ", ")
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
