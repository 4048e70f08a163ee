package machine

import (
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

func (d *decision) findClaims() {
	all := machineconfig.Disks(d.vm)
	d.claims = make([]neededClaim, 1, len(all)+1)
	d.claims[0] = d.claimNamed(spec.RunnerDataClaimName(d.vm.Name), objects.RunnerDataDisk)
	for i := range all {
		disk := &all[i]
		switch {
		case disk.IsCD(), disk.Entry.Ephemeral():
			continue
		case disk.Entry.PersistentVolumeClaim != nil:
			c := neededClaim{name: disk.Claim, disk: disk, found: d.claim(disk.Claim)}
			if disk.IsImage() && c.found != nil {
				disk.Format = c.found.Annotations[names.AnnotationDiskFormat]
			}
			d.noteMode(&c)
			if size := virtualDiskSize(c.found); size > 0 {
				if d.growTo == nil {
					d.growTo = map[string]int64{}
				}
				d.growTo[c.name] = size
			}
			d.claims = append(d.claims, c)
		default:
			c := d.claimNamed(disk.Claim, disk.Name)
			c.disk, disk.Claim = disk, c.name
			d.noteMode(&c)
			d.claims = append(d.claims, c)
		}
	}
	d.disks = all
	if len(d.hot) > 0 {
		// The claims refer to entries of all, so d.disks is a separate list.
		d.disks = slices.DeleteFunc(slices.Clone(all), func(disk machineconfig.Disk) bool { return d.isHot(disk.Claim) })
	}
	d.recallClaims()
	for i := range d.claims {
		d.judge(&d.claims[i])
	}
	for i := range d.vm.Spec.VM.Shares {
		if s := d.vm.Spec.VM.Shares[i].PersistentVolumeClaim; s != nil {
			d.judge(&neededClaim{name: s.ClaimName, share: fmt.Sprintf("spec.vm.shares[%d]", i), found: d.claim(s.ClaimName)})
		}
	}
	d.noteClaims()
	d.devices.setTrue(spec.ReasonBlockDevicesReady, "all volume claims are bound")
}

// claimNamed returns a claim that the operator creates or has created. One of the former name
// counts if it has VM-Operator's labels and the machine does not run, and did not last run, with
// a claim of the present name: a former claim restored later does not replace that.
func (d *decision) claimNamed(name, disk string) neededClaim {
	former := objects.FormerClaim(d.vm.Name, disk)
	if c := d.claim(former); c != nil && d.ours(c) && !d.succeeded(name, disk) {
		return neededClaim{name: former, found: c, legacy: true}
	}
	return neededClaim{name: name, found: d.claim(name)}
}

// succeeded reports whether the machine runs, or last ran, with the claim of the present name.
func (d *decision) succeeded(name, disk string) bool {
	if d.pod.state != podAbsent && d.pod.state != podForeign && d.pod.state != podOrphaned && d.claim(name) != nil && slices.Contains(objects.PodClaims(d.pod.pod), name) {
		return true
	}
	return slices.ContainsFunc(d.stored.Claims, func(c spec.MachineClaim) bool { return c.Disk == disk && c.ClaimName == name })
}

// noteMode keeps the volume mode of an existing claim, whatever the manifest says now: it is
// immutable.
func (d *decision) noteMode(c *neededClaim) {
	if c.found == nil || c.found.Spec.VolumeMode == nil {
		return
	}
	if d.modes == nil {
		d.modes = map[string]corev1.PersistentVolumeMode{}
	}
	d.modes[c.name] = *c.found.Spec.VolumeMode
}

// judge checks a claim. One that is merely not bound does not keep a pod from being created: its
// volume may be provisioned for the pod's node.
func (d *decision) judge(c *neededClaim) {
	switch pvc := c.found; {
	case pvc == nil && c.ofRef():
		d.unmade = true
		ref, short := c.disk.Ref, "vd"
		if ref.IsImage() {
			short = "vi"
		}
		d.devices.setProblem(spec.ReasonClaimNotFound, named(ref.Kind, ref.Name), "%s %s of %s does not exist, or has no claim yet; create it, or see kubectl describe %s %[2]s", ref.Kind, ref.Name, c.field(), short)
	case c.ofRef() && !ofReferred(pvc, c.disk.Ref):
		d.unmade = true
		d.devices.setProblem(spec.ReasonClaimNotFound, named(names.KindClaim, c.name), "claim %s is there, and none of %s %s of %s; name another disk, or name the claim in spec.vm.disks[].persistentVolumeClaim",
			c.name, c.disk.Ref.Kind, c.disk.Ref.Name, c.field())
	case pvc == nil && c.referenced():
		d.unmade = true
		d.devices.setProblem(spec.ReasonClaimNotFound, named(names.KindClaim, c.name), "claim %s of %s does not exist; create it or correct the name", c.name, c.field())
	case pvc != nil && c.referenced() && ofImage(pvc) && !c.ofImage():
		d.unmade = true
		kind, image := objects.ImageOf(pvc)
		d.devices.setProblem(spec.ReasonClaimOfImage, named(names.KindClaim, c.name), "claim %s of %s is that of %s %s, which no machine writes to; name a VirtualDisk that is made of it (dataSource.objectRef)", c.name, c.field(), kind, image)
	case c.gone():
		d.unmade = true
		text, commands := d.goneText()
		if d.devices.setProblem(spec.ReasonClaimGone, named(names.KindClaim, c.former.ClaimName), "%s", text) {
			d.devices.further = commands
		}
	case pvc == nil && !d.wanted():
		d.unmade = true
		d.devices.setFalse(spec.ReasonBlockDevicesNotReady, "claim %s of %s is being made", c.name, c.field())
	case pvc == nil:
		d.unmade = true
		d.devices.setWaiting(spec.ReasonBlockDevicesNotReady, named(names.KindClaim, c.name), "claim %s of %s is being made; see kubectl describe pvc %s", c.name, c.field(), c.name)
	case !c.referenced() && !d.mine(pvc):
		d.unmade = true
		d.devices.setProblem(spec.ReasonClaimOfOtherMachine, named(names.KindClaim, c.name), "claim %s of %s belongs to machine %s; rename the disk or the machine",
			c.name, c.field(), pvc.Labels[names.LabelInstance])
	case pvc.DeletionTimestamp != nil:
		d.unmade = true
		then, commands := d.afterDeletion(c)
		if d.devices.setProblem(spec.ReasonClaimTerminating, named(names.KindClaim, c.name), "claim %s of %s is deleted with its data once no pod uses it; %s", c.name, c.field(), then) {
			d.devices.further = commands
		}
	case pvc.Status.Phase == corev1.ClaimLost:
		d.unmade = true
		d.devices.setProblem(spec.ReasonClaimLost, named(names.KindClaim, c.name), "claim %s of %s has lost volume %s; restore the volume or delete the claim",
			c.name, c.field(), pvc.Spec.VolumeName)
	case c.ofImage() && pvc.Annotations[names.AnnotationFilled] == "":
		d.unmade = true
		image := c.disk.Ref.Name
		d.devices.setWaiting(spec.ReasonBlockDevicesNotReady, named(names.KindClaim, c.name), "claim %s of %s is that of VirtualImage %s, which is not in it yet; see kubectl describe vi %[3]s", c.name, c.field(), image)
		d.filling = true
	case c.referenced() && beingFilled(pvc):
		d.unmade = true
		disk := pvc.Labels[names.LabelDisk]
		d.devices.setWaiting(spec.ReasonBlockDevicesNotReady, named(names.KindClaim, c.name), "claim %s of %s is that of VirtualDisk %s, which is not in it yet; see kubectl describe vd %s", c.name, c.field(), disk, disk)
		d.filling = true
	case pvc.Status.Phase != corev1.ClaimBound && !d.wanted():
		// Its volume may be provisioned once there is a pod.
		d.devices.setFalse(spec.ReasonBlockDevicesNotReady, "claim %s of %s has no volume yet; see kubectl describe pvc %s", c.name, c.field(), c.name)
	case pvc.Status.Phase != corev1.ClaimBound:
		d.devices.setWaiting(spec.ReasonBlockDevicesNotReady, named(names.KindClaim, c.name), "claim %s of %s waits for a volume; see kubectl describe pvc %s", c.name, c.field(), c.name)
	}
}

func (d *decision) wantedClaim(c *neededClaim) *corev1.PersistentVolumeClaim {
	if c.disk == nil {
		return objects.RunnerDataClaim(d.vm, d.s.Settings)
	}
	return objects.DiskClaim(d.vm, *c.disk)
}

func (d *decision) makeClaims() {
	for i := range d.claims {
		c := &d.claims[i]
		if c.found != nil || c.referenced() || c.gone() {
			continue
		}
		pvc := d.wantedClaim(c)
		if c.disk == nil {
			pvc.Annotations = map[string]string{names.AnnotationOrigin: string(machineconfig.OriginVMOP)}
		}
		if uid := d.s.VM.UID; uid != "" { // a cluster's machine
			if pvc.Annotations == nil {
				pvc.Annotations = map[string]string{}
			}
			pvc.Annotations[names.AnnotationMadeFor] = string(uid)
		}
		d.do(reconcile.Create{Object: pvc}, &d.devices)
	}
}

func (d *decision) updateClaims() {
	for i := range d.claims {
		c := &d.claims[i]
		if c.found == nil || c.found.DeletionTimestamp != nil || !d.mine(c.found) || c.legacy || c.referenced() {
			continue
		}
		labels, annotations := objects.ClaimLacks(d.vm, c.disk, &c.found.ObjectMeta)
		annotations = reconcile.Readable(annotations)
		have, want := c.found.Spec.Resources.Requests[corev1.ResourceStorage], objects.ClaimSize(c.disk)
		grows := false
		switch order := spec.CompareQuantities(want, have); {
		case order > 0:
			// Kubernetes allows growing only bound claims.
			grows = c.found.Status.Phase == corev1.ClaimBound
		case order < 0 && c.disk != nil && !want.IsZero():
			d.configuration.setProblem(spec.ReasonShrinkRefused, named(names.KindClaim, c.name), "%s asks for %s, but claim %s has %s already, and volumes do not shrink; ask for %[4]s again",
				c.field(), want.String(), c.name, have.String())
		}
		if len(labels) == 0 && len(annotations) == 0 && !grows {
			continue
		}
		u := reconcile.UpdateClaim{Name: c.name, UID: c.found.UID, ResourceVersion: c.found.ResourceVersion, Labels: labels, Annotations: annotations}
		if grows {
			u.Storage = new(want) // copied only if needed
		}
		d.do(u, &d.devices)
	}
}
