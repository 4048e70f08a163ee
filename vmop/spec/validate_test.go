package spec_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// Each entry breaks one thing of any valid machine; the finding must name the
// field.
func TestOneMistakeIsFoundInAnyMachine(t *testing.T) {
	mistakes := map[string]func(*spec.VirtualMachine) string{
		"certificates of more bytes than letters": func(vm *spec.VirtualMachine) string {
			size := resource.MustParse("1Gi")
			vm.Spec.VM.Disks = []spec.Disk{{Image: &spec.DiskImage{
				Name: "a", Source: "https://a.test/a", Size: &size, CABundle: "-----BEGIN CERTIFICATE-----\n" + strings.Repeat("ü", limits.MaxCABundle/2),
			}}}
			return "spec.vm.disks[0].image.caBundle"
		},
		"no name":     func(vm *spec.VirtualMachine) string { vm.Name = ""; return "metadata.name" },
		"digit first": func(vm *spec.VirtualMachine) string { vm.Name = "1" + vm.Name; return "metadata.name" },
		"dot in name": func(vm *spec.VirtualMachine) string { vm.Name = "a.b"; return "metadata.name" },
		"long name":   func(vm *spec.VirtualMachine) string { vm.Name = strings.Repeat("a", 64); return "metadata.name" },
		"an unknown panic device": func(vm *spec.VirtualMachine) string {
			vm.Spec.VM.PanicDevice = "hyperv"
			return "spec.vm.panicDevice"
		},
		"no CPUs": func(vm *spec.VirtualMachine) string {
			vm.Spec.VM.MaximumCPUs, vm.Spec.VM.CPUTopology = nil, nil
			return "spec.vm.maximumCpus"
		},
		"a toleration of nothing": func(vm *spec.VirtualMachine) string {
			vm.Spec.Tolerations = []corev1.Toleration{{}}
			return "spec.tolerations[0].operator"
		},
		"a toleration's value for any value": func(vm *spec.VirtualMachine) string {
			vm.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists, Value: "gpu"}}
			return "spec.tolerations[0].value"
		},
		"a toleration that ends without an effect that does": func(vm *spec.VirtualMachine) string {
			seconds := int64(30)
			vm.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule, TolerationSeconds: &seconds}}
			return "spec.tolerations[0].effect"
		},
		"an unknown effect": func(vm *spec.VirtualMachine) string {
			vm.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Effect: "NoStart"}}
			return "spec.tolerations[0].effect"
		},
		"spread over nothing": func(vm *spec.VirtualMachine) string {
			vm.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}}
			return "spec.topologySpreadConstraints[0].topologyKey"
		},
		"spread by no number": func(vm *spec.VirtualMachine) string {
			vm.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule}}
			return "spec.topologySpreadConstraints[0].maxSkew"
		},
		"spread twice": func(vm *spec.VirtualMachine) string {
			c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule}
			vm.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c, c}
			return "spec.topologySpreadConstraints[1].topologyKey"
		},
		"kept apart by no label of nodes": func(vm *spec.VirtualMachine) string {
			vm.Spec.Affinity = &spec.Affinity{VirtualMachineAndPodAntiAffinity: &spec.VirtualMachineAndPodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}}}
			return "spec.affinity.virtualMachineAndPodAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"
		},
		"drawn with no weight": func(vm *spec.VirtualMachine) string {
			vm.Spec.Affinity = &spec.Affinity{VirtualMachineAndPodAffinity: &spec.VirtualMachineAndPodAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []spec.WeightedVirtualMachineAndPodAffinityTerm{{Term: corev1.PodAffinityTerm{TopologyKey: "zone"}}},
			}}
			return "spec.affinity.virtualMachineAndPodAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"
		},
		"a label that is matched twice": func(vm *spec.VirtualMachine) string {
			vm.Spec.Affinity = &spec.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: "zone", MatchLabelKeys: []string{"app"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
			}}}}
			return "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys[0]"
		},
		"nodes by an unknown operator": func(vm *spec.VirtualMachine) string {
			vm.Spec.Affinity = &spec.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "Is"}}}},
			}}}
			return "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator"
		},
		"a priority class of no name": func(vm *spec.VirtualMachine) string {
			vm.Spec.PriorityClassName = "High Priority"
			return "spec.priorityClassName"
		},
		"less than no time to shut down": func(vm *spec.VirtualMachine) string {
			vm.Spec.TerminationGracePeriodSeconds = new(int32(-1))
			return "spec.terminationGracePeriodSeconds"
		},
		"user data twice": func(vm *spec.VirtualMachine) string {
			vm.Spec.CloudInit = &spec.CloudInit{UserData: &runtime.RawExtension{Raw: []byte("{}")}, UserDataFrom: &spec.CloudInitSource{SecretRef: spec.SecretKeyReference{Name: "a"}}}
			return "spec.cloudInit.userDataFrom"
		},
		"meta-data twice": func(vm *spec.VirtualMachine) string {
			vm.Spec.CloudInit = &spec.CloudInit{MetaData: map[string]string{}, MetaDataFrom: &spec.CloudInitSource{SecretRef: spec.SecretKeyReference{Name: "a"}}}
			return "spec.cloudInit.metaDataFrom"
		},
		"user data of no secret": func(vm *spec.VirtualMachine) string {
			vm.Spec.CloudInit = &spec.CloudInit{UserDataFrom: &spec.CloudInitSource{}}
			return "spec.cloudInit.userDataFrom.secretRef.name"
		},
		"path as a key of a secret": func(vm *spec.VirtualMachine) string {
			vm.Spec.CloudInit = &spec.CloudInit{NetworkConfigFrom: &spec.CloudInitSource{SecretRef: spec.SecretKeyReference{Name: "a", Key: ".."}}}
			return "spec.cloudInit.networkConfigFrom.secretRef.key"
		},
		"too many CPUs": func(vm *spec.VirtualMachine) string {
			n := int32(vm.Spec.VM.MaxCPUs()) + 1
			vm.Spec.VM.CurrentCPUs = &n
			return "spec.vm.currentCpus"
		},
		"zero CPUs": func(vm *spec.VirtualMachine) string {
			n := int32(0)
			vm.Spec.VM.CurrentCPUs = &n
			return "spec.vm.currentCpus"
		},
		"huge topology": func(vm *spec.VirtualMachine) string {
			vm.Spec.VM.MaximumCPUs = nil
			vm.Spec.VM.CPUTopology = &spec.CPUTopology{Sockets: 4096, DiesPerSocket: 4096, CoresPerDie: 4096, ThreadsPerCore: 4096}
			return "spec.vm.cpuTopology"
		},
		"too much RAM": func(vm *spec.VirtualMachine) string {
			q := resource.MustParse("1Ei")
			vm.Spec.VM.CurrentRAM = &q
			return "spec.vm.currentRam"
		},
		"half a byte": func(vm *spec.VirtualMachine) string {
			q := resource.MustParse("500m")
			vm.Spec.VM.CurrentRAM = &q
			return "spec.vm.currentRam"
		},
		"negative RAM": func(vm *spec.VirtualMachine) string {
			q := resource.MustParse("-1Gi")
			vm.Spec.VM.MaximumRAM = &q
			return "spec.vm.maximumRam"
		},
		"endless RAM": func(vm *spec.VirtualMachine) string {
			q := resource.MustParse("1e30")
			vm.Spec.VM.MaximumRAM = &q
			return "spec.vm.maximumRam"
		},
		"NUL in args": func(vm *spec.VirtualMachine) string {
			vm.Spec.VM.KernelBoot = &spec.KernelBoot{Kernel: "k", Args: "a\x00b"}
			return "spec.vm.kernelBoot.args"
		},
		"no kernel": func(vm *spec.VirtualMachine) string {
			vm.Spec.VM.KernelBoot = &spec.KernelBoot{Args: "a"}
			return "spec.vm.kernelBoot.kernel"
		},
		"escaping CD": func(vm *spec.VirtualMachine) string {
			return addDisk(vm, spec.Disk{Cdrom: &spec.Cdrom{Image: "a/../../b"}}) + ".cdrom.image"
		},
		"line in CD": func(vm *spec.VirtualMachine) string {
			return addDisk(vm, spec.Disk{Cdrom: &spec.Cdrom{Image: "a\nb"}}) + ".cdrom.image"
		},
		"foreign URL": func(vm *spec.VirtualMachine) string {
			return addDisk(vm, spec.Disk{Cdrom: &spec.Cdrom{Image: "nbd://x"}}) + ".cdrom.image"
		},
		"no disk kind": func(vm *spec.VirtualMachine) string { return addDisk(vm, spec.Disk{}) },
		"two disk kinds": func(vm *spec.VirtualMachine) string {
			return addDisk(vm, spec.Disk{Cdrom: &spec.Cdrom{}, PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "unique-claim"}})
		},
		"runner's claim": func(vm *spec.VirtualMachine) string {
			return addDisk(vm, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: vm.Name + "-runner-data"}}) + ".persistentVolumeClaim.claimName"
		},
		"reserved name": func(vm *spec.VirtualMachine) string {
			d := spec.Disk{VolumeClaimTemplate: &spec.VolumeClaimTemplate{}}
			d.VolumeClaimTemplate.Metadata.Name = vm.Name + "-runner-data"
			d.VolumeClaimTemplate.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
			return addDisk(vm, d) + ".volumeClaimTemplate.metadata.name"
		},
		"multicast MAC": func(vm *spec.VirtualMachine) string {
			return addNetwork(vm, spec.Network{User: &spec.UserNetwork{MAC: "53:54:00:00:00:01"}}) + ".user.mac"
		},
		"VNC on socket and port": func(vm *spec.VirtualMachine) string {
			port := int32(5999)
			vm.Spec.VM.Display = &spec.Display{VNC: &spec.VNC{UnixSocket: true, Port: &port}}
			return "spec.vm.display.vnc.port"
		},
		"WebSockets beside a socket": func(vm *spec.VirtualMachine) string {
			port := int32(5700)
			vm.Spec.VM.Display = &spec.Display{VNC: &spec.VNC{UnixSocket: true, Websocket: &port}}
			return "spec.vm.display.vnc.websocket"
		},
		"claims of devices": func(vm *spec.VirtualMachine) string {
			vm.Spec.Resources = &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}
			return "spec.resources.claims"
		},
		"one pod and one node": func(vm *spec.VirtualMachine) string {
			return addTemplate(vm, func(c *spec.VolumeClaimSpec) {
				c.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod, corev1.ReadWriteOnce}
			}) + ".accessModes"
		},
		"a source of no group": func(vm *spec.VirtualMachine) string {
			return addTemplate(vm, func(c *spec.VolumeClaimSpec) {
				c.DataSource = &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "a"}
			}) + ".dataSource.kind"
		},
		"a source of no name": func(vm *spec.VirtualMachine) string {
			return addTemplate(vm, func(c *spec.VolumeClaimSpec) {
				c.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim"}
			}) + ".dataSourceRef.name"
		},
		"two sources": func(vm *spec.VirtualMachine) string {
			return addTemplate(vm, func(c *spec.VolumeClaimSpec) {
				c.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "a"}
				c.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "b"}
			}) + ".dataSourceRef"
		},
		"a source here and elsewhere": func(vm *spec.VirtualMachine) string {
			return addTemplate(vm, func(c *spec.VolumeClaimSpec) {
				c.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "a"}
				c.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "a", Namespace: new("other")}
			}) + ".dataSource"
		},
		"spread by a label twice": func(vm *spec.VirtualMachine) string {
			vm.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
				MatchLabelKeys: []string{"app"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
			}}
			return "spec.topologySpreadConstraints[0].matchLabelKeys[0]"
		},
		"shares, and more disks than beside them": func(vm *spec.VirtualMachine) string {
			for i := range limits.MaxDisksBesideShares + 1 {
				vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: fmt.Sprint("one-of-many-", i)}})
			}
			vm.Spec.VM.Shares = []spec.Share{{Tag: "a", PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "shared"}}}
			return "spec.vm.shares"
		},
		"more disks than places": func(vm *spec.VirtualMachine) string {
			for i := range limits.MaxDisks + 1 {
				vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: fmt.Sprint("one-of-many-", i)}})
			}
			return "spec.vm.disks"
		},
		"no network kind": func(vm *spec.VirtualMachine) string { return addNetwork(vm, spec.Network{}) },
	}
	for name, mistake := range mistakes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				vm := spectest.VirtualMachine().Draw(t, "vm")
				path := mistake(vm)
				errs := spec.Validate(vm)
				for _, e := range errs {
					if e.Field == path {
						return
					}
				}
				t.Fatalf("nothing was found at %s: %v", path, errs.ToAggregate())
			})
		})
	}
}

func addDisk(vm *spec.VirtualMachine, d spec.Disk) string {
	vm.Spec.VM.Disks = append([]spec.Disk{d}, vm.Spec.VM.Disks...)
	return "spec.vm.disks[0]"
}

func addTemplate(vm *spec.VirtualMachine, change func(*spec.VolumeClaimSpec)) string {
	t := &spec.VolumeClaimTemplate{}
	t.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	change(&t.Spec)
	return addDisk(vm, spec.Disk{VolumeClaimTemplate: t}) + ".volumeClaimTemplate.spec"
}

func addNetwork(vm *spec.VirtualMachine, n spec.Network) string {
	vm.Spec.VM.Networks = append([]spec.Network{n}, vm.Spec.VM.Networks[:min(len(vm.Spec.VM.Networks), limits.MaxNetworks-1)]...)
	return "spec.vm.networks[0]"
}

func TestCDImages(t *testing.T) {
	for image, valid := range map[string]bool{
		"": true, "cd.iso": true, "dir/cd.iso": true, "./cd.iso": true, "a..b": true, "..a/b": true,
		"/srv/cd.iso": true, "/srv/../cd.iso": true, "with space,comma=x\"'.iso": true, "a:b.iso": true,
		"https://example.org/cd.iso": true, "HTTP://example.org:8080/x?y=1,2": true, "file:///srv/cd.iso": true, "file:/srv/cd.iso": true,
		"..": false, "../x": false, "a/../b": false, "a/..": false, ".": false, "a/": false, "/": false,
		"http:cd.iso": false, "file:cd.iso": false, "https://": false, "ssh://h/x": false, "a\x00b": false, "http://h/a b": false, "\xff": false,
	} {
		vm := &spec.VirtualMachine{}
		vm.Name = "vm"
		n := int32(1)
		vm.Spec.VM.MaximumCPUs = &n
		vm.Spec.VM.Disks = []spec.Disk{{Cdrom: &spec.Cdrom{Image: image}}}
		if errs := spec.Validate(vm); (len(errs) == 0) != valid {
			t.Errorf("%q: valid %v, findings %v", image, valid, errs)
		}
	}
}

func TestDiskNames(t *testing.T) {
	template := func(name string) spec.Disk {
		d := spec.Disk{VolumeClaimTemplate: &spec.VolumeClaimTemplate{}}
		d.VolumeClaimTemplate.Metadata.Name = name
		return d
	}
	cd := spec.Disk{Cdrom: &spec.Cdrom{}}
	// CDs do not count, named templates do.
	disks := []spec.Disk{cd, cd, template("system"), template("")}
	for i, want := range []string{"", "", "system-disk", "disk-1"} {
		if got := spec.DiskName(disks, i); got != want {
			t.Errorf("disk %d: got %q, want %q", i, got, want)
		}
	}
}

// A VNC server has a port unless it is on a UNIX socket, and each port that is
// there is taken by one thing only.
func TestVNCPorts(t *testing.T) {
	for manifest, want := range map[string]string{
		"vnc: {}":                  "5901",
		"vnc: {unixSocket: false}": "5901",
		"vnc: {port: 5999}":        "5999",
		"vnc: {unixSocket: true}":  "none",
		"vnc: {unixSocket: true, generateSecret: false}":          "none",
		"vnc: {unixSocket: true, port: 5901}":                     "spec.vm.display.vnc.port: Forbidden: a server on a UNIX socket has none; remove it or unixSocket",
		"vnc: {unixSocket: true, websocket: 5700}":                "spec.vm.display.vnc.websocket: Forbidden: a server on a UNIX socket has none; remove it or unixSocket",
		"vnc: {unixSocket: /run/vnc.sock}":                        "spec.vm.display.vnc.unixSocket: is a string",
		"spice: {port: 5901}, vnc: {}":                            "is already taken by spec.vm.display.spice.port",
		"spice: {port: 5901}, vnc: {unixSocket: false}":           "is already taken by spec.vm.display.spice.port",
		"spice: {port: 5901}, vnc: {unixSocket: true}":            "none",
		"spice: {port: 5901}, vnc: {port: 5902, websocket: 5900}": "5902",
	} {
		data := "apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: web}\nspec: {vm: {maximumCpus: 1, display: {" + manifest + "}}}\n"
		objects, err := spec.Load("web.yaml", []byte(data), spec.Options{Validate: true})
		var got string
		switch {
		case err != nil:
			got = err.Error()
		default:
			vm := objects[0].VirtualMachine
			spec.Default(vm)
			if got = "none"; vm.Spec.VM.Display.VNC.Port != nil {
				got = strconv.Itoa(int(*vm.Spec.VM.Display.VNC.Port))
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", manifest, got, want)
		}
	}
	// The port of a socket's server is free for the guest.
	for socket, taken := range map[bool]bool{true: false, false: true} {
		n := int32(1)
		vm := &spec.VirtualMachine{Spec: spec.VirtualMachineSpec{VM: spec.Machine{
			MaximumCPUs: &n,
			Display:     &spec.Display{VNC: &spec.VNC{UnixSocket: socket}},
			Networks:    []spec.Network{{User: &spec.UserNetwork{HostForwards: []spec.HostForward{{HostPort: 5901, GuestPort: 22}}}}},
		}}}
		vm.Name = "web"
		if errs := spec.Validate(vm); (len(errs) > 0) != taken {
			t.Errorf("unixSocket %v: %v", socket, errs)
		}
	}
}
