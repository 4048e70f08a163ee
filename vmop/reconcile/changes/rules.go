package changes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

type rule struct {
	// pattern is the field's JSON path with [] for any position. A rule applies to everything
	// below it that has no rule of its own.
	pattern string
	applied Applied
	reason  string
}

const (
	labels      = "metadata.labels"
	annotations = "metadata.annotations"
	template    = "spec.vm.disks[].volumeClaimTemplate"

	containerDisk = "spec.vm.disks[].containerDisk"

	diskKept  = "a disk that is there stays what it is; name another one"
	claimKept = "Kubernetes does not change this of a volume claim that exists"
)

// rules is the table of what reaches a running machine. Every field of the specification that is
// not a structure of its own package has an entry, and a test fails for one without: the author
// of a field decides here.
//
// Beyond the machine itself, what the running machine does not use is live (the viewer's host and
// proxy), and what QEMU or the pod is started with is not.
var rules = slices.Concat(own, displayRules())

// displayRules returns the rules of fields from the table of display protocols: QEMU and the pod
// are started with them.
func displayRules() []rule {
	var out []rule
	for _, p := range limits.DisplayProtocols() {
		at := "spec.vm.display." + p.Name + "."
		for _, port := range p.Ports {
			out = append(out, rule{at + port.Field, AppliedRestart, ""})
		}
		if p.UnixSocket {
			out = append(out, rule{at + "unixSocket", AppliedRestart, ""})
		}
		out = append(out, rule{at + "generateSecret", AppliedRestart, ""})
	}
	return out
}

// own are the rules that no other table has.
var own = []rule{
	{labels, AppliedLive, ""},
	{annotations, AppliedLive, ""},
	{"spec.image.source", AppliedRestart, ""},
	{"spec.image.repository", AppliedRestart, ""},
	{"spec.image.path", AppliedRestart, ""},
	{"spec.image.version", AppliedRestart, ""},
	{"spec.image.pullPolicy", AppliedRestart, ""},
	{"spec.resources", AppliedRestart, ""}, // see effect
	{"spec.virtualMachineClassName", AppliedRestart, ""},
	{"spec.coreFraction", AppliedRestart, ""},
	{"spec.nodeName", AppliedRestart, ""},
	{"spec.nodeSelector", AppliedRestart, ""},
	{"spec.affinity.nodeAffinity", AppliedRestart, ""},
	{"spec.affinity.podAffinity", AppliedRestart, ""},
	{"spec.affinity.podAntiAffinity", AppliedRestart, ""},
	{"spec.affinity.virtualMachineAndPodAffinity.requiredDuringSchedulingIgnoredDuringExecution", AppliedRestart, ""},
	{"spec.affinity.virtualMachineAndPodAffinity.preferredDuringSchedulingIgnoredDuringExecution", AppliedRestart, ""},
	{"spec.affinity.virtualMachineAndPodAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", AppliedRestart, ""},
	{"spec.affinity.virtualMachineAndPodAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution", AppliedRestart, ""},
	{"spec.tolerations", AppliedRestart, ""},
	{"spec.topologySpreadConstraints", AppliedRestart, ""},
	{"spec.priorityClassName", AppliedRestart, ""},
	{"spec.terminationGracePeriodSeconds", AppliedLive, ""},
	{"spec.runnerTemplate.source", AppliedRestart, ""},
	{"spec.runnerTemplate.update", AppliedRestart, ""},
	{"spec.guestShutdownStops", AppliedLive, ""},
	{"spec.deletionPolicy", AppliedLive, ""},
	{"spec.runPolicy", AppliedLive, ""},
	{"spec.disruptions.restartApprovalMode", AppliedLive, ""},
	{"spec.loadBalancerService.labels", AppliedLive, ""},
	{"spec.loadBalancerService.annotations", AppliedLive, ""},
	{"spec.cloudInit.metaData", AppliedRestart, ""},
	{"spec.cloudInit.userData", AppliedRestart, ""},
	{"spec.cloudInit.networkConfig", AppliedRestart, ""},
	{"spec.cloudInit.metaDataFrom.secretRef.name", AppliedRestart, ""},
	{"spec.cloudInit.metaDataFrom.secretRef.key", AppliedRestart, ""},
	{"spec.cloudInit.userDataFrom.secretRef.name", AppliedRestart, ""},
	{"spec.cloudInit.userDataFrom.secretRef.key", AppliedRestart, ""},
	{"spec.cloudInit.networkConfigFrom.secretRef.name", AppliedRestart, ""},
	{"spec.cloudInit.networkConfigFrom.secretRef.key", AppliedRestart, ""},
	{"spec.provisioning.type", AppliedRestart, ""},
	{"spec.provisioning.userData", AppliedRestart, ""},
	{"spec.provisioning.userDataRef.kind", AppliedLive, ""},
	{"spec.provisioning.userDataRef.name", AppliedRestart, ""},
	{"spec.provisioning.sysprepRef.kind", AppliedLive, ""},
	{"spec.provisioning.sysprepRef.name", AppliedRestart, ""},
	{"spec.permissions", AppliedLive, ""},
	{"spec.pools", AppliedLive, ""},
	{"spec.loggingProperties", AppliedRestart, ""},
	{"spec.blockDeviceRefs[].kind", AppliedRestart, ""},
	{"spec.blockDeviceRefs[].name", AppliedRestart, ""},
	{"spec.blockDeviceRefs[].bootOrder", AppliedRestart, ""},
	{"spec.vm.state", AppliedLive, ""},
	{"spec.vm.machineUuid", AppliedRestart, ""},
	{"spec.vm.useTpm", AppliedRestart, ""},
	{"spec.vm.firmware", AppliedRestart, ""},
	{"spec.vm.panicDevice", AppliedRestart, ""},
	{"spec.vm.bootMenu", AppliedRestart, ""},
	{"spec.vm.kernelBoot.kernel", AppliedRestart, ""},
	{"spec.vm.kernelBoot.initrd", AppliedRestart, ""},
	{"spec.vm.kernelBoot.args", AppliedRestart, ""},
	{"spec.vm.powerdownTimeout", AppliedLive, ""},
	{"spec.vm.accelerator", AppliedRestart, ""},
	{"spec.vm.machineType", AppliedRestart, ""},
	{"spec.vm.cpuModel", AppliedRestart, ""},
	{"spec.vm.maximumCpus", AppliedRestart, ""},
	{"spec.vm.cpuTopology.sockets", AppliedRestart, ""},
	{"spec.vm.cpuTopology.diesPerSocket", AppliedRestart, ""},
	{"spec.vm.cpuTopology.coresPerDie", AppliedRestart, ""},
	{"spec.vm.cpuTopology.threadsPerCore", AppliedRestart, ""},
	{"spec.vm.currentCpus", AppliedLive, ""}, // see effect
	{"spec.vm.maximumRam", AppliedRestart, ""},
	{"spec.vm.currentRam", AppliedLive, ""}, // see effect
	{"spec.vm.rtcBase", AppliedRestart, ""},
	{"spec.vm.rtcClock", AppliedRestart, ""},
	{"spec.vm.networks[].tap.device", AppliedRestart, ""},
	{"spec.vm.networks[].tap.bridge", AppliedRestart, ""},
	{"spec.vm.networks[].tap.mac", AppliedRestart, ""},
	{"spec.vm.networks[].user.device", AppliedRestart, ""},
	{"spec.vm.networks[].user.net", AppliedRestart, ""},
	{"spec.vm.networks[].user.mac", AppliedRestart, ""},
	{"spec.vm.networks[].user.hostForwards[].protocol", AppliedRestart, ""},
	{"spec.vm.networks[].user.hostForwards[].hostAddress", AppliedRestart, ""},
	{"spec.vm.networks[].user.hostForwards[].hostPort", AppliedRestart, ""},
	{"spec.vm.networks[].user.hostForwards[].guestPort", AppliedRestart, ""},
	{template + ".metadata.name", AppliedRestart, ""},
	{template + ".metadata.labels", AppliedLive, ""},
	{template + ".metadata.annotations", AppliedLive, ""},
	{template + ".spec.accessModes", AppliedNever, claimKept},
	{template + ".spec.selector", AppliedNever, claimKept},
	{template + ".spec.resources", AppliedNever, claimKept}, // see effect
	{template + ".spec.volumeName", AppliedNever, claimKept},
	{template + ".spec.storageClassName", AppliedNever, claimKept},
	{template + ".spec.volumeMode", AppliedNever, claimKept},
	{template + ".spec.dataSource", AppliedNever, claimKept},
	{template + ".spec.dataSourceRef", AppliedNever, claimKept},
	{"spec.vm.disks[].persistentVolumeClaim.claimName", AppliedRestart, ""},
	{"spec.vm.disks[].image.name", AppliedRestart, ""},
	{"spec.vm.disks[].image.source", AppliedNever, diskKept},
	{"spec.vm.disks[].image.path", AppliedNever, diskKept},
	{"spec.vm.disks[].image.checksum", AppliedNever, diskKept},
	{"spec.vm.disks[].image.caBundle", AppliedNever, diskKept},
	{"spec.vm.disks[].image.size", AppliedRestart, ""}, // see effect
	{"spec.vm.disks[].image.storageClassName", AppliedNever, claimKept},
	{"spec.vm.disks[].containerDisk.name", AppliedRestart, ""},
	{containerDisk + ".image", AppliedRestart, ""}, // see effect
	{containerDisk + ".path", AppliedRestart, ""},
	{containerDisk + ".pullPolicy", AppliedRestart, ""},
	{containerDisk + ".persistent", AppliedRestart, ""},
	{containerDisk + ".size", AppliedRestart, ""},
	{containerDisk + ".storageClassName", AppliedNever, claimKept},
	{"spec.vm.disks[].cdrom.image", AppliedLive, ""},
	{"spec.vm.disks[].bootindex", AppliedRestart, ""},
	{"spec.vm.shares", AppliedRestart, ""},
	{"spec.vm.usbDevices", AppliedLive, ""},
	{"spec.vm.serial.enabled", AppliedRestart, ""},
	{"spec.vm.display.outputs", AppliedRestart, ""},
	{"spec.vm.display.loggedInUser", AppliedLive, ""},
	{"spec.vm.display.spice.server", AppliedLive, ""},
	{"spec.vm.display.spice.proxyUrl", AppliedLive, ""},
	{"spec.vm.display.spice.streamingVideo", AppliedRestart, ""},
	{"spec.vm.display.spice.usbRedirects", AppliedRestart, ""},
	{"spec.vm.display.tls.generateSecret", AppliedRestart, ""},
	{"spec.vm.display.tls.secretName", AppliedRestart, ""},
}

// Field is an entry of the table of what reaches a running machine.
type Field struct {
	// Path is the field's JSON path with [] for any position in a list. The entry applies to
	// everything below it that has none of its own.
	Path string
	// Applied is when a change takes effect; Reason is why, if not obvious.
	Applied Applied
	Reason  string
}

// Fields returns the table, in the order of the manifest as far as it has one. Effects that
// depend on more than the field, such as currentCpus above the maximum, the growth of a disk or
// an added or removed list entry, are known only to [Between].
func Fields() []Field {
	var out []Field
	for _, r := range rules {
		out = append(out, Field{r.pattern, r.applied, r.reason})
	}
	return out
}

// tabled finds the rule of a field. A structure added or removed as a whole is live only if all
// of it is; such an entry of a list is a device.
func tabled(pattern string) rule {
	within := rule{pattern, AppliedLive, ""}
	found := false
	for _, r := range rules {
		switch {
		case isOrContains(r.pattern, pattern):
			return r
		case isOrContains(pattern, r.pattern):
			found = true
			if r.applied != AppliedLive {
				within.applied = AppliedRestart
			}
		}
	}
	if !found || strings.HasSuffix(pattern, "[]") {
		within.applied = AppliedRestart
	}
	return within
}

func (d *differ) effect(at *location) (Applied, string) {
	pattern := at.pattern()
	r := tabled(pattern)
	was, is := &d.old.Spec.VM, &d.new.Spec.VM
	switch {
	case pattern == "spec.vm.currentCpus":
		if is.CurrentCPUs != nil && int64(*is.CurrentCPUs) > was.MaxCPUs() {
			return AppliedLive, fmt.Sprintf("up to %d, the maximum of the running machine; the rest needs a restart", was.MaxCPUs())
		}
		if CurrentCPUs(is) < CurrentCPUs(was) { // see live.UnplugCPU
			return AppliedLive, "with KVM; software emulation needs a restart to remove CPUs"
		}
	case pattern == "spec.vm.currentRam":
		if is.CurrentRAM != nil && spec.CompareQuantities(*is.CurrentRAM, *was.MaximumRAM) > 0 {
			return AppliedLive, fmt.Sprintf("up to %s, the maximum of the running machine; the rest needs a restart", was.MaximumRAM)
		}
	case pattern == "spec.vm.disks[].image.size" || pattern == containerDisk+".size":
		return d.imageSize(at)
	case isOrContains(containerDisk, pattern) && r.applied == AppliedRestart && at.name != "name" && at.name != "persistent":
		if i, j := at.entryIndex(); was.Disks[i].Template() != nil && is.Disks[j].Template() != nil {
			return AppliedNever, diskKept
		}
	case strings.HasPrefix(pattern, "spec.cloudInit") || strings.HasPrefix(pattern, "spec.provisioning"):
		if r.applied == AppliedRestart {
			return r.applied, d.seed(at, pattern)
		}
	case pattern == "spec.vm.disks[]":
		if at.was == at.index { // a replacement
			return r.applied, d.renamed(at.index)
		}
	case at.name == string(corev1.ResourceStorage) && pattern == template+".spec.resources.requests[]":
		return d.storage(at)
	}
	return r.applied, r.reason
}

// CurrentCPUs returns the number of CPUs that a machine starts with.
func CurrentCPUs(m *spec.Machine) int32 {
	if m == nil || m.CurrentCPUs == nil {
		return 1
	}
	return *m.CurrentCPUs
}

// renamed explains that a disk has another volume, where the manifests alone do not show it: the
// names of unnamed templates contain their position.
func (d *differ) renamed(i int) string {
	if i >= len(d.old.Spec.VM.Disks) || i >= len(d.new.Spec.VM.Disks) {
		return ""
	}
	was, is := spec.DiskName(d.old.Spec.VM.Disks, i), spec.DiskName(d.new.Spec.VM.Disks, i)
	if was == "" || is == "" || was == is {
		return ""
	}
	return fmt.Sprintf("the disk %s becomes %s, which has a volume of its own", was, is)
}

// storage returns the effect of a change of a disk's requested size. Kubernetes enlarges a bound
// claim and never shrinks one.
func (d *differ) storage(at *location) (Applied, string) {
	i, j := at.entryIndex()
	was := d.old.Spec.VM.Disks[i].VolumeClaimTemplate.Spec
	is := d.new.Spec.VM.Disks[j].VolumeClaimTemplate.Spec
	had, hadSize := was.Resources.Requests[corev1.ResourceStorage]
	want, hasSize := is.Resources.Requests[corev1.ResourceStorage]
	switch {
	case !hasSize:
		return AppliedNever, "a volume keeps the size that it has"
	case hadSize && spec.CompareQuantities(want, had) < 0:
		return AppliedNever, "a volume cannot shrink; make a new disk and copy the data"
	case *was.VolumeMode == corev1.PersistentVolumeFilesystem:
		return AppliedRestart, "the volume grows at once; the disk image on it, and what the guest sees, with the next start"
	}
	return AppliedRestart, "the volume grows at once; the guest sees the new size after a restart"
}

func (d *differ) imageSize(at *location) (Applied, string) {
	i, j := at.entryIndex()
	was, is := d.old.Spec.VM.Disks[i].Template(), d.new.Spec.VM.Disks[j].Template()
	if was == nil || is == nil {
		return AppliedRestart, ""
	}
	had, hadSize := was.Spec.Resources.Requests[corev1.ResourceStorage]
	want, hasSize := is.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case !hasSize:
		return AppliedNever, "a volume keeps the size that it has"
	case hadSize && spec.CompareQuantities(want, had) < 0:
		return AppliedNever, "a volume cannot shrink; make a new disk and copy the data"
	}
	return AppliedRestart, "the volume grows at once; the disk image on it, and what the guest sees, with the next start"
}

func (l *location) entryIndex() (was, is int) {
	for l.kind != inList {
		l = l.parent
	}
	return l.was, l.index
}
