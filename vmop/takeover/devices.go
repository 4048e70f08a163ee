package takeover

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	vmobjects "github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func (m *machine) networks() {
	networks := m.vm.Spec.VM.Networks
	if len(networks) == 0 {
		m.say(Note, TopicNetwork, "spec.vm.networks", "the manifest has no network, and VM-Operator's QEMU added one by itself (e1000e, user networking): the guest keeps it, at another place of the PCI bus", "")
	}
	for i, n := range networks {
		at := fmt.Sprintf("spec.vm.networks[%d]", i)
		if n.Tap != nil {
			m.say(Note, TopicNetwork, at+".tap", fmt.Sprintf("it is on bridge %s of the node, which stays; its pod needs %s", n.Tap.Bridge, strings.Join(m.privileges(), ", ")), "")
		}
		if n.Tap != nil && n.Tap.MAC == "" || n.User != nil && n.User.MAC == "" {
			kind := "user"
			if n.Tap != nil {
				kind = "tap"
			}
			m.say(Note, TopicNetwork, at+"."+kind+".mac", "the guest keeps the address that QEMU gave it, from 52:54:00:12:34:56 on, as every other guest of VM-Operator without an address", doIfTap(n.Tap != nil))
		}
	}
}

func doIfTap(tap bool) string {
	if tap {
		return "give each machine an address of its own where several are on one bridge"
	}
	return ""
}

func (m *machine) privileges() []string {
	if m.pod == nil {
		return []string{"what cannot be told, because the manifest is refused"}
	}
	return privileges(m.pod)
}

func (m *machine) bootOrder() {
	disks := m.vm.Spec.VM.Disks
	for i := range disks {
		if disks[i].Bootindex != nil {
			return
		}
	}
	if len(disks) > 1 && m.vm.Spec.VM.KernelBoot == nil {
		m.say(Note, TopicBoot, "spec.vm.disks", "no disk has a bootindex: the order is left to the firmware and what it remembers, as VM-Operator did; only in new machines it is the order of the list", "")
	}
}

func (m *machine) disks() {
	names := vmobjects.ClaimNames(m.vm)
	for _, name := range names {
		pvc, ok := get[corev1.PersistentVolumeClaim](m.objects, kindClaim, m.vm.Namespace, name)
		if !ok {
			continue
		}
		why, where := m.keepsOwner(pvc)
		switch {
		case why == "":
		case m.settings.TakeOverData && m.former():
			m.say(Note, TopicDisks, "", fmt.Sprintf("VM-Operator's runner was root and wrote its files on claim %s as such (%s); the machine's first pod gives them to vmop's runner, user %d, once: a container that is root with CAP_CHOWN and ends before the runner starts (VMOP_TAKE_OVER_DATA)",
				name, why, vmobjects.RunnerUser), "")
		default:
			m.say(Before, TopicDisks, "", fmt.Sprintf("VM-Operator's runner was root and wrote its files on claim %s as such, and Kubernetes gives them to nobody else (%s): vmop's runner, user %d, cannot write them",
				name, why, vmobjects.RunnerUser), fmt.Sprintf("set VMOP_TAKE_OVER_DATA=true, a setting of the operator, as deploy/takeover does; or, when the machine is stopped, run: %s", chown(where)))
		}
	}
	m.imageRepository()
	for i := range m.vm.Spec.VM.Disks {
		d := &m.vm.Spec.VM.Disks[i]
		if d.Cdrom == nil || !path.IsAbs(d.Cdrom.Image) || strings.HasPrefix(path.Clean(d.Cdrom.Image), machineconfig.ImageRepositoryDir+"/") {
			continue
		}
		m.say(Before, TopicDisks, fmt.Sprintf("spec.vm.disks[%d].cdrom.image", i), d.Cdrom.Image+" was a file of VM-Operator's image; vmop's has others",
			"put the file into the image repository and name it relative to that")
	}
}

func (m *machine) imageRepository() {
	const name = names.ImageRepositoryClaim
	if m.pod == nil || !slices.Contains(vmobjects.PodClaims(m.pod), name) {
		return
	}
	pvc, ok := get[corev1.PersistentVolumeClaim](m.objects, kindClaim, m.vm.Namespace, name)
	switch {
	case !ok && m.objects.has(kindClaim):
		m.check.say(kindNamespace, "", m.vm.Namespace, Before, TopicDisks, "", "there is no claim "+name+", which pods of machines mount",
			"deploy/image-repository in a kustomization of this namespace")
	case ok && pvc.Status.Phase == corev1.ClaimLost:
		m.check.say(kindClaim, pvc.Namespace, name, Before, TopicDisks, "", "its volume is lost, and pods of machines mount it", "restore the volume")
	}
}

type place struct {
	// directory is a path on the host; if unknown, described is a description of it.
	directory, described string
	host                 string
}

func chown(p place) string {
	words := []string{"chown", "-R", fmt.Sprintf("%d:%[1]d", vmobjects.RunnerUser)}
	line := shellwords.Join(append(words, p.directory)...)
	if p.directory == "" {
		line = shellwords.Join(words...) + " " + p.described
	}
	if p.host != "" {
		line += " (on " + p.host + ")"
	}
	return line
}

// keepsOwner returns why the files on a claim's volume stay root's when a pod with an fsGroup
// mounts it, and where they are; "" if they do not, if there are no files, or if it is unknown.
func (c *check) keepsOwner(pvc *corev1.PersistentVolumeClaim) (why string, where place) {
	if pvc.Spec.VolumeMode != nil && *pvc.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		return "", place{}
	}
	pv, ok := get[corev1.PersistentVolume](c.objects, kindVolume, "", pvc.Spec.VolumeName)
	if !ok {
		return "", place{}
	}
	switch s := &pv.Spec.PersistentVolumeSource; {
	case s.HostPath != nil:
		return "volume " + pv.Name + " is a hostPath", place{directory: s.HostPath.Path, host: nodeOf(pv)}
	case s.NFS != nil:
		return "volume " + pv.Name + " is on NFS", place{directory: s.NFS.Path, host: "server " + s.NFS.Server}
	case s.CSI != nil:
		driver, ok := get[storagev1.CSIDriver](c.objects, kindCSIDriver, "", s.CSI.Driver)
		if !ok || driver.Spec.FSGroupPolicy == nil {
			return "", place{}
		}
		switch policy := *driver.Spec.FSGroupPolicy; {
		case policy == storagev1.NoneFSGroupPolicy, policy == storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy && (s.CSI.FSType == "" || !onlyOnce(pv)):
			return fmt.Sprintf("driver %s with fsGroupPolicy %s", s.CSI.Driver, policy), place{described: "the directory of volume " + pv.Name}
		}
	}
	return "", place{}
}

func nodeOf(pv *corev1.PersistentVolume) string {
	if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil {
		for _, t := range a.Required.NodeSelectorTerms {
			for _, e := range t.MatchExpressions {
				if e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
					return "node " + e.Values[0]
				}
			}
		}
	}
	return "the volume's node"
}

// onlyOnce reports whether a volume is ReadWriteOnce, which a driver's default policy requires for
// changing the owner.
func onlyOnce(pv *corev1.PersistentVolume) bool {
	for _, m := range pv.Spec.AccessModes {
		if m != corev1.ReadWriteOnce && m != corev1.ReadWriteOncePod {
			return false
		}
	}
	return true
}

func (m *machine) display() {
	d := m.vm.Spec.VM.Display
	if d == nil || d.Spice == nil || m.pod == nil {
		return
	}
	at, port := "spec.vm.display.spice", *d.Spice.Port
	var served *corev1.ContainerPort
	for i, p := range m.pod.Spec.Containers[0].Ports {
		if p.Name == names.SPICEPortName {
			served = &m.pod.Spec.Containers[0].Ports[i]
		}
	}
	switch {
	case served == nil:
		m.say(Differs, TopicDisplay, at, fmt.Sprintf("it was at port %d of the node for everybody, and has no password unless there is a secret: such a display is reached inside of its pod only", port),
			"remove generateSecret: false, or set VMOP_ALLOW_OPEN_DISPLAYS=true, a setting of the operator")
		return
	case m.pod.Spec.HostNetwork && served.ContainerPort != port:
		m.say(Differs, TopicDisplay, at, fmt.Sprintf("it was at port %d of the node and is at port %d there, because the default port is one machine's", port, served.ContainerPort),
			"choose a port, or set VMOP_DISPLAY_HOST_PORTS=1-65535, a setting of the operator")
		return
	case m.pod.Spec.HostNetwork:
		m.say(Note, TopicDisplay, at, fmt.Sprintf("it stays at port %d of the node, because the pod is in the node's network", port), "")
		return
	case served.HostPort != 0:
		m.say(Note, TopicDisplay, at, fmt.Sprintf("it stays at port %d of the node, as VMOP_DISPLAY_HOST_PORTS says", port), "")
		return
	}
	m.say(Differs, TopicDisplay, at, fmt.Sprintf("it was at port %d of the node and is at that of the pod, which is reached inside of the cluster", port),
		"use vmop-cli spice --cluster, a load balancer (loadBalancerService) or a proxy that reaches the pods, or set VMOP_DISPLAY_HOST_PORTS, a setting of the operator")
	if d.Spice.Server != "" {
		m.say(Differs, TopicDisplay, at+".server", "viewers are sent to "+d.Spice.Server+", where the display is not any more unless a load balancer has that address", "remove it, or name what leads to the pod")
	}
	if d.Spice.ProxyURL != "" {
		m.say(Note, TopicDisplay, at+".proxyUrl", "viewers go through "+d.Spice.ProxyURL+", which must reach the pods", "")
	}
}
