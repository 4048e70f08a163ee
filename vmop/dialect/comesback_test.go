package dialect_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/dialect"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// object is one of another system, under way.
type object = map[string]any

// tale is a machine in our terms beside what it is in another system's.
type tale struct {
	ours *spec.VirtualMachine
	// theirs is the machine's specification, others are the objects beside it.
	theirs object
	others []object
	// noted are the paths that have a note: what has a counterpart, and still
	// something to tell.
	noted []string
}

// begin draws what both systems have alike: names, labels and where machines run.
func begin(t *rapid.T) (*tale, *spec.VirtualMachine) {
	from := spectest.VirtualMachine().Draw(t, "vm")
	ours := spec.NewVirtualMachine(from.Namespace, from.Name)
	ours.Labels = from.Labels
	if rapid.Bool().Draw(t, "annotated") {
		ours.Annotations = rapid.MapOfN(spectest.Label(), rapid.StringMatching(`[ -~]{0,20}`), 1, 3).Draw(t, "annotations")
	}
	s := &ours.Spec
	s.NodeSelector, s.Tolerations, s.TopologySpreadConstraints = from.Spec.NodeSelector, from.Spec.Tolerations, from.Spec.TopologySpreadConstraints
	s.PriorityClassName = from.Spec.PriorityClassName
	theirs := object{}
	for name, value := range map[string]any{"nodeSelector": s.NodeSelector, "tolerations": s.Tolerations, "topologySpreadConstraints": s.TopologySpreadConstraints} {
		if fmt.Sprint(value) != "map[]" && fmt.Sprint(value) != "[]" {
			theirs[name] = value
		}
	}
	if s.PriorityClassName != "" {
		theirs["priorityClassName"] = s.PriorityClassName
	}
	s.VM.Display = &spec.Display{VNC: &spec.VNC{UnixSocket: true}}
	size := spectest.Bytes(4<<20, 1<<40).Draw(t, "memory")
	s.VM.MaximumRAM, s.VM.CurrentRAM = new(size), new(size.DeepCopy())
	return &tale{ours: ours, theirs: theirs}, from
}

// check has the tale told, and holds it against ours.
func (w *tale) check(t *rapid.T, apiVersion string, theirs object) {
	objects := append(w.others, object{
		"apiVersion": apiVersion, "kind": "VirtualMachine",
		"metadata": object{"name": w.ours.Name, "namespace": w.ours.Namespace, "labels": w.ours.Labels, "annotations": w.ours.Annotations}, "spec": theirs,
	})
	var text strings.Builder
	for _, o := range objects {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "---\n%s\n", data)
	}
	translated, err := dialect.Translate(load(t, []byte(text.String())))
	if err != nil || len(translated.Machines) != 1 || len(translated.LeftOut) > 0 {
		t.Fatalf("%+v, %v", translated, err)
	}
	got := translated.Machines[0]
	if !apiequality.Semantic.DeepEqual(w.ours, got.VirtualMachine) {
		t.Fatalf("came back different: %s\nfrom %s", cmp.Diff(w.ours, got.VirtualMachine), text.String())
	}
	var noted []string
	for _, n := range got.Notes {
		noted = append(noted, n.Path)
	}
	slices.Sort(w.noted) // as they are in a file of one line
	if fmt.Sprint(noted) != fmt.Sprint(w.noted) {
		t.Fatalf("notes %v, want some of %v\nfrom %s", got.Notes, w.noted, text.String())
	}
}

// A machine in Deckhouse's terms, of all that has a counterpart here, is the machine
// that it was in ours.
func TestMachinesComeBackFromDeckhouse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, from := begin(t)
		s, theirs := &w.ours.Spec, w.theirs
		s.RunPolicy, s.VM.State = spec.RunPolicyAlwaysOnUnlessStoppedManually, spec.StateRunning
		if p := from.Spec.RunPolicy; p != "" {
			s.RunPolicy, theirs["runPolicy"] = p, p
			if p == spec.RunPolicyAlwaysOff || p == spec.RunPolicyManual {
				s.VM.State = spec.StateStopped
			}
		}
		if d := from.Spec.Disruptions; d != nil && d.RestartApprovalMode != "" {
			s.Disruptions, theirs["disruptions"] = d, d
		}
		grace := int32(60)
		if rapid.Bool().Draw(t, "grace") {
			grace = rapid.Int32Range(0, 3600).Draw(t, "terminationGracePeriodSeconds")
			theirs["terminationGracePeriodSeconds"] = grace
		}
		s.VM.PowerdownTimeout = &grace
		w.deckhouseSize(t, from)
		loader := rapid.SampledFrom([]string{"", "BIOS", "EFI", "EFIWithSecureBoot"}).Draw(t, "bootloader")
		s.VM.Firmware = map[string]spec.Firmware{"": spec.FirmwareBIOS, "BIOS": spec.FirmwareBIOS, "EFI": spec.FirmwareUEFI, "EFIWithSecureBoot": spec.FirmwareSecure}[loader]
		if loader != "" {
			theirs["bootloader"] = loader
		}
		w.deckhouseNetworks(t)
		if a := from.Spec.Affinity; a != nil {
			a.PodAffinity, a.PodAntiAffinity = nil, nil
			if *a != (spec.Affinity{}) {
				s.Affinity, theirs["affinity"] = a, a
			}
		}
		if p := from.Spec.Provisioning; p != nil && (p.Type != spec.ProvisioningUserData || strings.TrimSpace(p.UserData) != "") {
			for _, ref := range []*spec.ProvisioningSecret{p.UserDataRef, p.SysprepRef} {
				if ref != nil {
					ref.Kind = names.KindSecret
				}
			}
			s.Provisioning, theirs["provisioning"] = p, p
		}
		if rapid.Bool().Draw(t, "long user data") {
			w.deckhouseUserData(t)
		}
		w.deckhouseDisks(t)
		w.check(t, "virtualization.deckhouse.io/v1alpha2", theirs)
	})
}

// deckhouseNetworks draws none, the main one, or that and others, whose bridges are for
// somebody to choose.
func (w *tale) deckhouseNetworks(t *rapid.T) {
	m := &w.ours.Spec.VM
	if rapid.Bool().Draw(t, "the default network") {
		m.Networks = []spec.Network{{User: &spec.UserNetwork{}}}
		return
	}
	var theirs []object
	for i, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"Main", "Network", "ClusterNetwork"}), 1, 3).Draw(t, "networks") {
		if kind == "Main" {
			m.Networks, theirs = append(m.Networks, spec.Network{User: &spec.UserNetwork{}}), append(theirs, object{"type": kind})
			continue
		}
		m.Networks = append(m.Networks, spec.Network{Tap: &spec.TapNetwork{}})
		theirs = append(theirs, object{"type": kind, "name": "lan", "id": i})
		w.noted = append(w.noted, fmt.Sprintf("spec.networks[%d]", i))
	}
	w.theirs["networks"] = theirs
}

// deckhouseUserData draws user data about the length that spec.provisioning takes, which
// counts bytes: Deckhouse counts characters.
func (w *tale) deckhouseUserData(t *rapid.T) {
	s := &w.ours.Spec
	first := rapid.SampledFrom([]string{"#cloud-config\n", "#!/bin/sh\n"}).Draw(t, "begins with")
	letter := rapid.SampledFrom([]string{"a", "é", "木"}).Draw(t, "letter")
	text := first + "a: " + strings.Repeat(letter, rapid.IntRange(600, 2048).Draw(t, "letters")) + "\n"
	w.theirs["provisioning"] = object{"type": "UserData", "userData": text}
	s.Provisioning = nil
	if len(text) <= 2048 {
		s.Provisioning = &spec.Provisioning{Type: spec.ProvisioningUserData, UserData: text}
		return
	}
	data := any(object{"a": strings.TrimSpace(text[len(first)+3:])})
	if first == "#!/bin/sh\n" {
		type file struct { // in the order of the fields
			Path        string `json:"path"`
			Permissions string `json:"permissions"`
			Content     string `json:"content"`
		}
		data = object{"write_files": []file{{"/var/lib/cloud/scripts/per-instance/user-data", "0700", text}}}
	}
	s.CloudInit = &spec.CloudInit{UserData: asDocument(t, data)}
	w.noted = append(w.noted, "spec.provisioning.userData")
}

// asDocument is a document of cloud-init.
func asDocument(t *rapid.T, of any) *runtime.RawExtension {
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: text}
}

// deckhouseSize draws CPUs, memory and a class, which is beside the machine.
func (w *tale) deckhouseSize(t *rapid.T, from *spec.VirtualMachine) {
	s, theirs := &w.ours.Spec, w.theirs
	sockets := rapid.SampledFrom([]int32{1, 2, 4, 8}).Draw(t, "sockets")
	// Of these many there are more than of half the sockets.
	cores := sockets * rapid.Int32Range(9, 16).Draw(t, "cores of a socket")
	switch sockets {
	case 1:
		cores = rapid.Int32Range(1, 16).Draw(t, "cores")
		s.VM.MaximumCPUs = &cores
	default:
		s.VM.CPUTopology = &spec.CPUTopology{Sockets: sockets, CoresPerDie: cores / sockets}
	}
	s.VM.CurrentCPUs = &cores
	s.CoreFraction = from.Spec.CoreFraction
	cpu := object{"cores": cores}
	if s.CoreFraction != "" {
		cpu["coreFraction"] = s.CoreFraction
	}
	theirs["cpu"], theirs["memory"] = cpu, object{"size": s.VM.MaximumRAM}
	if !rapid.Bool().Draw(t, "class") {
		return
	}
	s.VirtualMachineClassName = spectest.Label().Draw(t, "virtualMachineClassName")
	theirs["virtualMachineClassName"] = s.VirtualMachineClassName
	policy := object{"cores": object{"min": 1, "max": 1024}}
	if rapid.Bool().Draw(t, "the class has a fraction") {
		policy["defaultCoreFraction"] = "20%"
	} else if s.CoreFraction == "" {
		s.CoreFraction = "100%"
	}
	w.others = append(w.others, object{
		"apiVersion": "virtualization.deckhouse.io/v1alpha3", "kind": "VirtualMachineClass", "metadata": object{"name": s.VirtualMachineClassName},
		"spec": object{"cpu": object{"type": "HostPassthrough"}, "sizingPolicies": []object{policy}},
	})
}

// deckhouseDisks draws disks and images.
func (w *tale) deckhouseDisks(t *rapid.T) {
	refs := []object{}
	// Those of the cluster come behind the others, and then the boot order says where
	// each was in the list; without them a bootindex is what a bootOrder was.
	var list []spec.Disk
	cluster, moved, given := map[int]bool{}, false, map[int]bool{}
	for i := range rapid.IntRange(0, 4).Draw(t, "disks") {
		name, size := fmt.Sprintf("disk-%d", i), spectest.Bytes(1<<20, 1<<40).Draw(t, "size")
		class, path := "fast", fmt.Sprintf("spec.blockDeviceRefs[%d]", i)
		kind, of := "VirtualDisk", object{"persistentVolumeClaim": object{"size": size, "storageClassName": class}}
		const url, sum = "https://images.example/debian.qcow2", "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
		var disk spec.Disk
		switch rapid.SampledFrom([]string{"claim", "template", "image", "container", "cd"}).Draw(t, "disk") {
		case "claim":
			cluster[i], of = true, nil
		case "template":
			disk.VolumeClaimTemplate = claimTemplate(name, size, class)
		case "image":
			disk.Image = &spec.DiskImage{Name: name, Source: url, Checksum: sum, Size: &size, StorageClassName: &class}
			from := object{"url": url, "checksum": object{"sha256": strings.TrimPrefix(sum, "sha256:")}}
			if rapid.Bool().Draw(t, "authority") {
				disk.Image.CABundle = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
				from["caBundle"] = base64.StdEncoding.EncodeToString([]byte(disk.Image.CABundle))
			}
			of["dataSource"] = object{"type": "HTTP", "http": from}
		case "container":
			disk.Image = &spec.DiskImage{Name: name, Source: "oci://quay.example/debian:13", Size: &size, StorageClassName: &class}
			of["dataSource"] = object{"type": "ContainerImage", "containerImage": object{"image": "quay.example/debian:13"}}
		case "cd":
			disk.Cdrom, kind = &spec.Cdrom{Image: url}, "VirtualImage"
			of = object{"dataSource": object{"type": "HTTP", "http": object{"url": url}}}
			w.noted = append(w.noted, path)
		}
		ref := object{"kind": kind, "name": name}
		if rapid.Bool().Draw(t, "in an order") {
			given[i] = true
			ref["bootOrder"] = i + 1
		}
		moved = moved || !cluster[i] && len(cluster) > 0
		if of != nil {
			w.others = append(w.others, object{"apiVersion": "virtualization.deckhouse.io/v1alpha2", "kind": kind, "metadata": object{"name": name, "namespace": w.ours.Namespace}, "spec": of})
		}
		list, refs = append(list, disk), append(refs, ref)
	}
	for i, disk := range list {
		says := given[i] || len(given) == 0 && moved
		order := int32(i + 1)
		if cluster[i] {
			r := spec.BlockDeviceRef{Kind: spec.KindDisk, Name: fmt.Sprintf("disk-%d", i)}
			if says {
				r.BootOrder = &order
			}
			w.ours.Spec.BlockDeviceRefs = append(w.ours.Spec.BlockDeviceRefs, r)
			continue
		}
		if says {
			disk.Bootindex = &order
			if len(cluster) > 0 {
				disk.Bootindex = new(order - 1)
			}
		}
		w.ours.Spec.VM.Disks = append(w.ours.Spec.VM.Disks, disk)
	}
	if len(refs) > 0 {
		w.theirs["blockDeviceRefs"] = refs
	}
}

func claimTemplate(name string, size resource.Quantity, class string) *spec.VolumeClaimTemplate {
	c := &spec.VolumeClaimTemplate{Metadata: spec.EmbeddedObjectMeta{Name: name}}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	c.Spec.StorageClassName = &class
	return c
}

// A machine in KubeVirt's terms, of all that has a counterpart here, is the machine
// that it was in ours.
func TestMachinesComeBackFromKubeVirt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, from := begin(t)
		s, instance := &w.ours.Spec, w.theirs
		theirs := object{"template": object{"spec": instance}}
		domain, devices := object{"memory": object{"guest": s.VM.MaximumRAM}}, object{}
		domain["devices"], instance["domain"] = devices, domain
		strategy := rapid.SampledFrom([]string{"", "Always", "Halted", "RerunOnFailure", "Manual"}).Draw(t, "runStrategy")
		s.RunPolicy = map[string]spec.RunPolicy{
			"Always": spec.RunPolicyAlwaysOn, "Halted": spec.RunPolicyAlwaysOff, "RerunOnFailure": spec.RunPolicyAlwaysOnUnlessStoppedManually, "Manual": spec.RunPolicyManual,
		}[strategy]
		running := strategy == "Always" || strategy == "RerunOnFailure"
		if strategy == "" {
			running = rapid.Bool().Draw(t, "running")
			theirs["running"] = running
		} else {
			theirs["runStrategy"] = strategy
		}
		s.VM.State = map[bool]spec.MachineState{true: spec.StateRunning, false: spec.StateStopped}[running]
		if rapid.Bool().Draw(t, "grace") {
			grace := rapid.Int32Range(0, 3600).Draw(t, "terminationGracePeriodSeconds")
			s.VM.PowerdownTimeout, instance["terminationGracePeriodSeconds"] = &grace, grace
		}
		if a := from.Spec.Affinity; a != nil {
			a.VirtualMachineAndPodAffinity, a.VirtualMachineAndPodAntiAffinity = nil, nil
			s.Affinity, instance["affinity"] = a, a
			if *a == (spec.Affinity{}) {
				s.Affinity = nil
				delete(instance, "affinity")
			}
		}
		w.kubevirtProcessor(t, domain)
		w.kubevirtFirmware(t, domain, devices)
		w.kubevirtDisks(t, theirs, instance, devices)
		w.kubevirtNetworks(t, instance, devices)
		if rapid.Bool().Draw(t, "preference") {
			w.prefer(t, theirs, instance, domain, devices)
		}
		if rapid.Bool().Draw(t, "instance type") {
			w.typed(t, theirs, instance, domain)
		}
		w.check(t, "kubevirt.io/v1", theirs)
	})
}

func (w *tale) kubevirtProcessor(t *rapid.T, domain object) {
	m := &w.ours.Spec.VM
	n := func(what string) int32 { return rapid.Int32Range(1, 4).Draw(t, what) }
	sockets, cores, threads := n("sockets"), n("cores"), n("threads")
	all := sockets * cores * threads
	m.CurrentCPUs = &all
	if threads > 1 || sockets > 1 && cores > 1 {
		m.CPUTopology = &spec.CPUTopology{Sockets: sockets, CoresPerDie: cores, ThreadsPerCore: threads}
	} else {
		m.MaximumCPUs = &all
	}
	cpu := object{"sockets": sockets, "cores": cores, "threads": threads}
	switch rapid.IntRange(0, 2).Draw(t, "model") {
	case 1:
		m.CPUModel, cpu["model"] = "host", "host-passthrough"
	case 2:
		m.CPUModel, cpu["model"] = "Nehalem,+aes,-vme", "Nehalem"
		cpu["features"] = []object{{"name": "aes"}, {"name": "vme", "policy": "disable"}}
	}
	domain["cpu"] = cpu
}

func (w *tale) kubevirtFirmware(t *rapid.T, domain, devices object) {
	m := &w.ours.Spec.VM
	firmware := object{}
	m.Firmware = rapid.SampledFrom([]spec.Firmware{spec.FirmwareBIOS, spec.FirmwareUEFI, spec.FirmwareSecure}).Draw(t, "firmware")
	if m.Firmware != spec.FirmwareBIOS {
		firmware["bootloader"] = object{"efi": object{"secureBoot": m.Firmware == spec.FirmwareSecure}}
	}
	if rapid.Bool().Draw(t, "uuid") {
		m.MachineUUID = "5d307ca9-b3ef-428c-8861-06e72d69f223"
		firmware["uuid"] = m.MachineUUID
	}
	if len(firmware) > 0 {
		domain["firmware"] = firmware
	}
	if rapid.Bool().Draw(t, "machine type") {
		m.MachineType, domain["machine"] = "pc-q35-8.2", object{"type": "pc-q35-8.2"}
	}
	if rapid.Bool().Draw(t, "clock") {
		m.RTCBase, domain["clock"] = "utc", object{"utc": object{}}
	}
	if m.UseTPM = rapid.Bool().Draw(t, "TPM"); m.UseTPM {
		devices["tpm"] = object{"persistent": true}
	}
	if rapid.Bool().Draw(t, "no display") {
		m.Display, devices["autoattachGraphicsDevice"] = nil, false
	}
	if rapid.Bool().Draw(t, "no serial port") {
		m.Serial, devices["autoattachSerialConsole"] = &spec.SerialConsole{Enabled: new(false)}, false
	}
}

func (w *tale) kubevirtDisks(t *rapid.T, theirs, instance, devices object) {
	m := &w.ours.Spec.VM
	disks, volumes, templates := []object{}, []object{}, []object{}
	for i := range rapid.IntRange(0, 4).Draw(t, "disks") {
		name, size := fmt.Sprintf("disk-%d", i), spectest.Bytes(1<<20, 1<<40).Draw(t, "size")
		class, volume := "fast", object{"name": name}
		made := func(source object) {
			volume["dataVolume"] = object{"name": "dv-" + name}
			templates = append(templates, object{"metadata": object{"name": "dv-" + name}, "spec": object{
				"storage": object{"resources": object{"requests": object{"storage": size}}, "storageClassName": class}, "source": source,
			}})
		}
		var disk spec.Disk
		how, bus := "disk", map[string]string{"disk": "virtio", "cdrom": "sata"}
		switch rapid.SampledFrom([]string{"claim", "container", "blank", "clone", "image", "empty", "CD of a claim", "CD of an image"}).Draw(t, "disk") {
		case "claim":
			disk.PersistentVolumeClaim, volume["persistentVolumeClaim"] = &spec.VolumeClaimReference{ClaimName: "c" + name}, object{"claimName": "c" + name}
		case "container":
			disk.ContainerDisk = &spec.ContainerDisk{Name: name, Image: "quay.example/debian:13", Path: "/disk/a.img", PullPolicy: corev1.PullAlways}
			volume["containerDisk"] = object{"image": "quay.example/debian:13", "path": "/disk/a.img", "imagePullPolicy": "Always"}
		case "blank":
			disk.VolumeClaimTemplate = claimTemplate(name, size, class)
			made(object{"blank": object{}})
		case "clone":
			disk.VolumeClaimTemplate = claimTemplate(name, size, class)
			disk.VolumeClaimTemplate.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
			made(object{"pvc": object{"name": "golden"}})
		case "image":
			disk.Image = &spec.DiskImage{Name: name, Source: "https://images.example/debian.qcow2", Size: &size, StorageClassName: &class}
			made(object{"http": object{"url": disk.Image.Source}})
		case "empty":
			disk.VolumeClaimTemplate = claimTemplate(name, size, class)
			disk.VolumeClaimTemplate.Spec.StorageClassName = nil
			volume["emptyDisk"] = object{"capacity": size}
			w.noted = append(w.noted, fmt.Sprintf("spec.template.spec.volumes[%d].emptyDisk", i))
		case "CD of a claim":
			disk.PersistentVolumeClaim, volume["persistentVolumeClaim"] = &spec.VolumeClaimReference{ClaimName: "c" + name}, object{"claimName": "c" + name}
			how = "cdrom"
			w.noted = append(w.noted, fmt.Sprintf("spec.template.spec.domain.devices.disks[%d].cdrom", i))
		case "CD of an image":
			disk.Cdrom, volume["containerDisk"] = &spec.Cdrom{}, object{"image": "quay.example/drivers:1"}
			how = "cdrom"
			w.noted = append(w.noted, fmt.Sprintf("spec.template.spec.volumes[%d].containerDisk", i))
		}
		d := object{"name": name, how: object{"bus": bus[how]}}
		if rapid.Bool().Draw(t, "in an order") {
			disk.Bootindex, d["bootOrder"] = new(int32(i+1)), i+1
		}
		m.Disks, disks, volumes = append(m.Disks, disk), append(disks, d), append(volumes, volume)
	}
	switch rapid.SampledFrom([]string{"", "seed", "sysprep"}).Draw(t, "provisioning") {
	case "seed":
		c := &spec.CloudInit{UserData: asDocument(t, object{"packages": []string{"nginx"}, "password": "a: b"})}
		seed := object{"userData": "#cloud-config\npackages: [nginx]\npassword: 'a: b'\n"}
		if rapid.Bool().Draw(t, "network") {
			c.NetworkConfig = asDocument(t, object{"version": 2, "ethernets": object{"eth0": object{"dhcp4": true}}})
			text := "ethernets: {eth0: {dhcp4: true}}\nversion: 2\n"
			if rapid.Bool().Draw(t, "encoded") {
				seed["networkDataBase64"] = base64.StdEncoding.EncodeToString([]byte(text))
			} else {
				seed["networkData"] = text
			}
		}
		w.ours.Spec.CloudInit = c
		volumes = append(volumes, object{"name": "seed", "cloudInitNoCloud": seed})
		disks = append(disks, object{"name": "seed", "disk": object{"bus": "virtio"}})
	case "sysprep":
		w.ours.Spec.Provisioning = &spec.Provisioning{Type: spec.ProvisioningSysprepRef, SysprepRef: &spec.ProvisioningSecret{Kind: names.KindSecret, Name: "answers"}}
		w.noted = append(w.noted, fmt.Sprintf("spec.template.spec.volumes[%d].sysprep", len(volumes)))
		volumes = append(volumes, object{"name": "answers", "sysprep": object{"secret": object{"name": "answers"}}})
		disks = append(disks, object{"name": "answers", "cdrom": object{"bus": "sata"}})
	}
	if len(disks) > 0 {
		devices["disks"], instance["volumes"] = disks, volumes
	}
	if len(templates) > 0 {
		theirs["dataVolumeTemplates"] = templates
	}
}

func (w *tale) kubevirtNetworks(t *rapid.T, instance, devices object) {
	m := &w.ours.Spec.VM
	if rapid.Bool().Draw(t, "no network") {
		devices["autoattachPodInterface"] = false
		return
	}
	user := &spec.UserNetwork{}
	m.Networks = []spec.Network{{User: user}}
	if rapid.Bool().Draw(t, "the default network") {
		return
	}
	nic := object{"name": "default", "masquerade": object{}}
	if rapid.Bool().Draw(t, "mac") {
		user.MAC, nic["macAddress"] = "02:00:00:aa:bb:cc", "02-00-00-AA-BB-CC"
	}
	if rapid.Bool().Draw(t, "model") {
		user.Device, nic["model"] = "e1000e", "e1000e"
	}
	if rapid.Bool().Draw(t, "ports") {
		user.HostForwards = []spec.HostForward{{Protocol: spec.ForwardTCP, HostPort: 22, GuestPort: 22}, {Protocol: spec.ForwardUDP, HostPort: 53, GuestPort: 53}}
		nic["ports"] = []object{{"name": "ssh", "port": 22}, {"protocol": "UDP", "port": 53}}
	}
	devices["interfaces"], instance["networks"] = []object{nic}, []object{{"name": "default", "pod": object{}}}
}

// prefer moves some of what the machine says into its preference, which is beside it.
func (w *tale) prefer(t *rapid.T, theirs, instance, domain, devices object) {
	preference := object{}
	into := func(part string) object {
		if preference[part] == nil {
			preference[part] = object{}
		}
		return preference[part].(object)
	}
	move := func(from object, field string, to func() object, as string) {
		if value, has := from[field]; has && rapid.Bool().Draw(t, "prefers "+field) {
			to()[as] = value
			delete(from, field)
		}
	}
	in := func(part string) func() object { return func() object { return into(part) } }
	move(instance, "terminationGracePeriodSeconds", func() object { return preference }, "preferredTerminationGracePeriodSeconds")
	if firmware, has := domain["firmware"].(object); has {
		if loader, has := firmware["bootloader"].(object); has {
			move(loader, "efi", in("firmware"), "preferredEfi")
		}
	}
	if machine, has := domain["machine"].(object); has {
		move(machine, "type", in("machine"), "preferredMachineType")
	}
	move(domain, "clock", in("clock"), "preferredClockOffset")
	move(devices, "tpm", in("devices"), "preferredTPM")
	for _, of := range []string{"GraphicsDevice", "SerialConsole", "PodInterface"} {
		move(devices, "autoattach"+of, in("devices"), "preferredAutoattach"+of)
	}
	move(domain["cpu"].(object), "features", in("cpu"), "preferredCPUFeatures")
	if nics, has := devices["interfaces"].([]object); has {
		move(nics[0], "model", in("devices"), "preferredInterfaceModel")
	} else if w.ours.Spec.VM.Networks != nil && rapid.Bool().Draw(t, "prefers a model") {
		into("devices")["preferredInterfaceModel"] = "e1000"
		w.ours.Spec.VM.Networks[0].User.Device = "e1000"
	}
	if len(preference) > 0 && rapid.Bool().Draw(t, "disks of a preference") {
		into("devices")["preferredDiskBus"] = "virtio"
	}
	theirs["preference"] = w.beside(t, "Preference", preference)
}

// typed moves CPUs, memory and nodes into the machine's instance type, which is beside it.
func (w *tale) typed(t *rapid.T, theirs, instance, domain object) {
	cpu := domain["cpu"].(object)
	sockets, cores, threads := cpu["sockets"].(int32), cpu["cores"].(int32), cpu["threads"].(int32)
	preferred := object{}
	switch {
	case sockets*cores*threads == 1, cores*threads == 1:
	case sockets*threads == 1:
		preferred["preferredCPUTopology"] = rapid.SampledFrom([]string{"cores", "preferCores"}).Draw(t, "topology")
	case sockets*cores == 1:
		preferred["preferredCPUTopology"] = rapid.SampledFrom([]string{"threads", "preferThreads"}).Draw(t, "topology")
	case threads == 1:
		preferred["preferredCPUTopology"], preferred["spreadOptions"] = "preferSpread", object{"ratio": cores}
	case threads == 2 && sockets == 1:
		preferred["preferredCPUTopology"], preferred["spreadOptions"] = "spread", object{"across": "CoresThreads"}
	case threads == 2:
		preferred["preferredCPUTopology"], preferred["spreadOptions"] = "spread", object{"across": "SocketsCoresThreads", "ratio": cores}
	default:
		return // which no preference says
	}
	if len(preferred) > 0 {
		if theirs["preference"] != nil { // one preference is enough
			return
		}
		theirs["preference"] = w.beside(t, "Preference", object{"cpu": preferred})
	}
	sizes := object{"cpu": object{"guest": sockets * cores * threads}, "memory": domain["memory"]}
	delete(domain, "memory")
	for _, field := range []string{"sockets", "cores", "threads"} {
		delete(cpu, field)
	}
	if model, has := cpu["model"]; has && rapid.Bool().Draw(t, "model of the type") {
		sizes["cpu"].(object)["model"] = model
		delete(cpu, "model")
	}
	if nodes, has := instance["nodeSelector"]; has && rapid.Bool().Draw(t, "nodes of the type") {
		sizes["nodeSelector"] = nodes
		delete(instance, "nodeSelector")
	}
	if rapid.Bool().Draw(t, "room for more memory") {
		most := w.ours.Spec.VM.MaximumRAM.DeepCopy()
		most.Add(*w.ours.Spec.VM.MaximumRAM)
		w.ours.Spec.VM.MaximumRAM = &most
		sizes["memory"].(object)["maxGuest"] = most
	}
	theirs["instancetype"] = w.beside(t, "Instancetype", sizes)
}

// beside adds an instance type or a preference, of the namespace or of the cluster, and
// returns the reference to it.
func (w *tale) beside(t *rapid.T, what string, of object) object {
	kind, meta := "VirtualMachine"+what, object{"name": "common", "namespace": w.ours.Namespace}
	if rapid.Bool().Draw(t, what+" of the cluster") {
		kind, meta = "VirtualMachineCluster"+what, object{"name": "common"}
	}
	w.others = append(w.others, object{"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": kind, "metadata": meta, "spec": of})
	ref := object{"name": "common"}
	if rapid.Bool().Draw(t, what+" by kind") {
		ref["kind"] = kind
	}
	return ref
}
