package main

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

func (w *diskWork) describe(namespace, name string) error {
	ctx, cancel := w.request()
	defer cancel()
	d, err := w.client.Disk(ctx, namespace, name)
	if err != nil {
		return err
	}
	if format := w.c.String("output"); forPrograms(format) {
		printed := output.VirtualDisk(*d)
		printed.ManagedFields = nil
		return w.printOne(format, &printed)
	}
	attached, err := w.client.AttachmentsOf(ctx, namespace, name)
	if err != nil {
		w.note("%v", err) // the rest is still worth reading
	}
	next := nextSteps{
		hint:    func(words ...string) string { return w.hint(w.c, words...) },
		kubectl: func(words ...string) string { return w.kubectl(w.c, words...) },
	}
	if err := textout.Properties(w.stdout, diskPage(d, attached, time.Now(), next)); err != nil {
		return err
	}
	found, err := w.client.DiskHappenings(ctx, namespace, name)
	switch {
	case err != nil:
		w.note("%v", err)
		return nil
	case len(found) == 0:
		return nil
	}
	fmt.Fprintln(w.stdout)
	return w.writeEvents(formatTable, namespace, found)
}

func diskPage(d *spec.VirtualDisk, attached []*spec.VirtualMachineBlockDeviceAttachment, now time.Time, next nextSteps) page {
	var out page
	s, claim := &d.Status, &d.Spec.PersistentVolumeClaim
	out.add("Disk", fullName(d.Namespace, d.Name))
	is := textout.OrNone(string(s.Phase))
	if s.Progress != "" && s.Phase == spec.DiskProvisioning {
		is += ", " + s.Progress
	}
	out.add("It is", is+", made "+textout.Age(now, d.CreationTimestamp.Time)+" ago")
	size := textout.Size(spec.Bytes(claim.Size))
	if s.Capacity != nil {
		size += "; its volume has " + textout.Size(spec.Bytes(*s.Capacity))
	}
	out.add("Size", size)
	out.add("Made of", madeOf(d.Spec.DataSource))
	if t := s.Target; t != nil && t.PersistentVolumeClaim != "" {
		volume := t.PersistentVolumeClaim + ", " + string(d.Spec.VolumeMode())
		if s.Format != "" {
			volume += " with a file of " + s.Format
		}
		if claim.StorageClassName != nil {
			volume += ", storage class " + textout.OrNone(*claim.StorageClassName)
		}
		out.add("Claim", volume)
	}
	var machines []string
	for _, m := range s.AttachedToVirtualMachines {
		machines = append(machines, m.Name)
	}
	out.add("Machines", textout.OrNone(strings.Join(machines, ", ")))
	for _, a := range attached {
		text := fmt.Sprintf("%s, to %s: %s", a.Name, a.Spec.VirtualMachineName, textout.OrNone(string(a.Status.Phase)))
		if c := spec.FindCondition(a.Status.Conditions, conditions.Attached); c != nil && c.Status != metav1.ConditionTrue {
			text += ", " + c.Message
		}
		out.add("Attachment", text)
	}
	if i := s.Import; i != nil && i.Attempts > 0 {
		out.add("Failed", textout.Counted(int(i.Attempts), "attempt")+", the last one with: "+i.Message)
	}
	for _, c := range s.Conditions {
		out.add(c.Type, fmt.Sprintf("%s, %s: %s", c.Status, c.Reason, c.Message))
	}
	out.add("Next", diskNext(d, len(attached) > 0, next))
	return out
}

func madeOf(s *spec.VirtualDiskSource) string {
	switch {
	case s == nil:
		return "nothing: it was empty"
	case s.ObjectRef != nil:
		return s.ObjectRef.Kind + " " + s.ObjectRef.Name
	case s.Type == spec.DiskSourceUpload:
		return "what somebody uploads"
	}
	return s.Location()
}

func diskNext(d *spec.VirtualDisk, attached bool, next nextSteps) string {
	use := "name it in spec.blockDeviceRefs of a machine, or " + next.hint("disk", "attach", "-n", d.Namespace, "MACHINE", d.Name)
	switch s := &d.Status; {
	case d.DeletionTimestamp != nil && len(s.AttachedToVirtualMachines) > 0:
		return "it goes when no machine has it"
	case d.DeletionTimestamp != nil:
		return "it goes when nothing uses it; InUse says what does"
	case s.Phase == "":
		return "see that the operator runs: " + next.kubectl("get", "deployment", "-n", "vmop-system", "vmop-operator")
	case s.Phase == spec.DiskFailed:
		return "Ready says why; delete it, and make another one: " + next.hint("disk", "delete", "-n", d.Namespace, d.Name)
	case s.Phase == spec.DiskWaitForUserUpload:
		return next.hint("disk", "upload", "-n", d.Namespace, d.Name, "FILE")
	case s.Phase == spec.DiskWaitForFirstConsumer:
		return "its volume is made for the first machine that uses it: " + use
	case !s.Phase.Usable():
		return "wait; Ready says for what"
	case len(s.AttachedToVirtualMachines) == 0 && !attached:
		return use
	}
	return "nothing needs to be done"
}
