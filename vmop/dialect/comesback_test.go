package dialect_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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

	// kind is the machine's, if it is no VirtualMachine; at is where its instance is.
	kind, at string
	// old says that it is of v1alpha2 or older, where volumes have names of their own.
	old bool
	// labels and annotations are what its own metadata has, beside those that come
	// from elsewhere.
	labels, annotations map[string]string
}

// note expects a note on a field of the instance.
func (w *tale) note(format string, args ...any) {
	w.noted = append(w.noted, w.at+fmt.Sprintf(format, args...))
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
	return &tale{ours: ours, theirs: theirs, kind: "VirtualMachine", labels: maps.Clone(ours.Labels), annotations: maps.Clone(ours.Annotations)}, from
}

// check has the tale told, and holds it against ours.
func (w *tale) check(t *rapid.T, apiVersion string, theirs object) {
	objects := append(w.others, object{
		"apiVersion": apiVersion, "kind": w.kind,
		"metadata": object{"name": w.ours.Name, "namespace": w.ours.Namespace, "labels": w.labels, "annotations": w.annotations}, "spec": theirs,
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
		if rapid.Bool().Draw(t, "what is so anyway") {
			theirs["osType"], theirs["enableParavirtualization"] = "Generic", true
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
	s.CloudInit = &spec.CloudInit{UserData: asDocument(t, object{"a": strings.TrimSpace(text[len(first)+3:])})}
	if first == "#!/bin/sh\n" {
		s.CloudInit.UserData = written(t, text)
	}
	w.noted = append(w.noted, "spec.provisioning.userData")
}

// written is the cloud-config that writes a script.
func written(t *rapid.T, script string) *runtime.RawExtension {
	type file struct { // in the order of the fields
		Path        string `json:"path"`
		Permissions string `json:"permissions"`
		Encoding    string `json:"encoding,omitempty"`
		Content     string `json:"content"`
	}
	of := file{Path: "/var/lib/cloud/scripts/per-instance/user-data", Permissions: "0700", Content: script}
	if !utf8.ValidString(script) {
		of.Encoding, of.Content = "b64", base64.StdEncoding.EncodeToString([]byte(script))
	}
	return asDocument(t, object{"write_files": []file{of}})
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

// deckhouseDisks draws disks and images. In place of one of all namespaces the machine
// refers to one of its own that is made of it.
func (w *tale) deckhouseDisks(t *rapid.T) {
	refs := []object{}
	for i := range rapid.IntRange(0, 4).Draw(t, "disks") {
		r := spec.BlockDeviceRef{Name: fmt.Sprintf("disk-%d", i), Kind: rapid.SampledFrom([]string{"VirtualDisk", "VirtualImage", "ClusterVirtualImage"}).Draw(t, "kind")}
		ref := object{"kind": r.Kind, "name": r.Name}
		if rapid.Bool().Draw(t, "in an order") {
			r.BootOrder = new(int32(i + 1))
			ref["bootOrder"] = i + 1
		}
		if rapid.Bool().Draw(t, "is among the files") {
			of := w.deckhouseSource(t)
			if r.Kind == "VirtualDisk" {
				of["persistentVolumeClaim"] = object{"size": spectest.Bytes(1<<20, 1<<40).Draw(t, "size")}
			}
			w.deckhouseBeside(r.Kind, r.Name, of)
		}
		if r.Kind == "ClusterVirtualImage" {
			r.Kind, r.Name = "VirtualImage", r.Name+"-cvi"
			w.noted = append(w.noted, fmt.Sprintf("spec.blockDeviceRefs[%d]", i))
		}
		w.ours.Spec.BlockDeviceRefs = append(w.ours.Spec.BlockDeviceRefs, r)
		refs = append(refs, ref)
	}
	if len(refs) > 0 {
		w.theirs["blockDeviceRefs"] = refs
	}
}

const imageURL = "https://images.example/debian.qcow2"

// deckhouseSource draws the specification of a disk or image with its source.
func (w *tale) deckhouseSource(t *rapid.T) object {
	if rapid.Bool().Draw(t, "of a registry") {
		return object{"dataSource": object{"type": "ContainerImage", "containerImage": object{"image": "quay.example/debian:13"}}}
	}
	return object{"dataSource": object{"type": "HTTP", "http": object{"url": imageURL}}}
}

// deckhouseBeside adds an object beside the machine.
func (w *tale) deckhouseBeside(kind, name string, of object) {
	meta := object{"name": name}
	if !strings.HasPrefix(kind, "Cluster") {
		meta["namespace"] = w.ours.Namespace
	}
	w.others = append(w.others, object{"apiVersion": "virtualization.deckhouse.io/v1alpha2", "kind": kind, "metadata": meta, "spec": of})
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
		version := rapid.SampledFrom([]string{"v1", "v1alpha3", "v1alpha2", "v1alpha1"}).Draw(t, "version")
		if w.old = version == "v1alpha2" || version == "v1alpha1"; w.old {
			w.noted = append(w.noted, "apiVersion")
		}
		theirs := object{"template": object{"spec": instance}}
		w.at = "spec.template.spec."
		if rapid.Bool().Draw(t, "an instance alone") {
			w.kind, w.at, theirs = "VirtualMachineInstance", "spec.", instance
			s.VM.State, s.GuestShutdownStops = spec.StateRunning, true
		} else {
			w.kubevirtPower(t, theirs)
			w.kubevirtMetadata(t, theirs["template"].(object))
		}
		instances := w.kind != "VirtualMachine"
		domain, devices := object{"memory": object{"guest": s.VM.MaximumRAM}}, object{}
		domain["devices"], instance["domain"] = devices, domain
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
		if !instances && rapid.Bool().Draw(t, "preference") {
			w.prefer(t, theirs, instance, domain, devices)
		}
		if instances || !rapid.Bool().Draw(t, "instance type") || !w.typed(t, theirs, instance, domain) {
			w.kubevirtSize(t, domain)
		}
		if version == "v1alpha1" { // where they had other names
			w.kind = map[bool]string{true: "VirtualMachine", false: "OfflineVirtualMachine"}[instances]
		}
		w.check(t, "kubevirt.io/"+version, theirs)
	})
}

// kubevirtPower draws whether the machine runs.
func (w *tale) kubevirtPower(t *rapid.T, theirs object) {
	s := &w.ours.Spec
	strategy := rapid.SampledFrom([]string{"", "Always", "Halted", "RerunOnFailure", "Once", "Manual"}).Draw(t, "runStrategy")
	s.RunPolicy = map[string]spec.RunPolicy{
		"Always": spec.RunPolicyAlwaysOn, "Halted": spec.RunPolicyAlwaysOff, "RerunOnFailure": spec.RunPolicyAlwaysOnUnlessStoppedManually,
		"Once": spec.RunPolicyAlwaysOnUnlessStoppedManually, "Manual": spec.RunPolicyManual,
	}[strategy]
	running := strategy == "Always" || strategy == "RerunOnFailure" || strategy == "Once"
	switch strategy {
	case "":
		running = rapid.Bool().Draw(t, "running")
		theirs["running"] = running
	case "Once":
		w.noted = append(w.noted, "spec.runStrategy")
		fallthrough
	default:
		theirs["runStrategy"] = strategy
	}
	s.VM.State = map[bool]spec.MachineState{true: spec.StateRunning, false: spec.StateStopped}[running]
}

// kubevirtMetadata moves some labels and annotations to the template, whose count.
func (w *tale) kubevirtMetadata(t *rapid.T, template object) {
	meta := object{}
	for name, own := range map[string]map[string]string{"labels": w.labels, "annotations": w.annotations} {
		moved := map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(own)) {
			switch rapid.IntRange(0, 2).Draw(t, name+" of the template") {
			case 1:
				moved[key] = own[key]
				delete(own, key)
			case 2:
				moved[key] = own[key]
				own[key] = "another"
			}
		}
		if len(moved) > 0 {
			meta[name] = moved
		}
	}
	if len(meta) > 0 {
		template["metadata"] = meta
	}
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
	switch rapid.IntRange(0, 4).Draw(t, "model") {
	case 1:
		m.CPUModel, cpu["model"] = "host", "host-passthrough"
	case 2:
		m.CPUModel, cpu["model"] = "host", "host-model"
		w.note("domain.cpu.model")
	case 3:
		m.CPUModel, cpu["model"] = "Nehalem", "Nehalem"
	}
	if rapid.Bool().Draw(t, "features") {
		var features []object
		if m.CPUModel == "" {
			m.CPUModel = "host"
		}
		for _, name := range []string{"aes", "vme", "avx"} {
			policy := rapid.SampledFrom([]string{"", "require", "force", "disable", "forbid"}).Draw(t, "policy")
			features = append(features, object{"name": name, "policy": policy})
			m.CPUModel += map[bool]string{true: ",-", false: ",+"}[policy == "disable" || policy == "forbid"] + name
		}
		cpu["features"] = features
	}
	domain["cpu"] = cpu
}

// kubevirtSize has what the machine says of its size said in another place.
func (w *tale) kubevirtSize(t *rapid.T, domain object) {
	m := &w.ours.Spec.VM
	resources := object{}
	part := func(of, what string, value any) {
		if resources[of] == nil {
			resources[of] = object{}
		}
		resources[of].(object)[what] = value
	}
	switch rapid.SampledFrom([]string{"guest", "room", "requests", "limits"}).Draw(t, "memory") {
	case "guest":
		part("requests", "memory", "1Mi") // computed here
		w.note("domain.resources.requests.memory")
	case "room":
		most := m.MaximumRAM.DeepCopy()
		most.Add(*m.MaximumRAM)
		domain["memory"] = object{"guest": m.CurrentRAM, "maxGuest": most}
		m.MaximumRAM = &most
	case "requests":
		part("requests", "memory", m.MaximumRAM)
		part("limits", "memory", "2Ti")
		w.note("domain.resources.limits.memory")
		delete(domain, "memory")
	case "limits":
		part("limits", "memory", m.MaximumRAM)
		delete(domain, "memory")
	}
	if cpu := domain["cpu"].(object); m.CPUTopology == nil && rapid.Bool().Draw(t, "CPUs of resources") {
		part(rapid.SampledFrom([]string{"requests", "limits"}).Draw(t, "of"), "cpu", *m.CurrentCPUs)
		for _, name := range []string{"sockets", "cores", "threads"} {
			delete(cpu, name)
		}
		if len(cpu) == 0 {
			delete(domain, "cpu")
		}
	}
	domain["resources"] = resources
}

func (w *tale) kubevirtFirmware(t *rapid.T, domain, devices object) {
	m := &w.ours.Spec.VM
	firmware := object{}
	m.Firmware = rapid.SampledFrom([]spec.Firmware{spec.FirmwareBIOS, spec.FirmwareUEFI, spec.FirmwareSecure}).Draw(t, "firmware")
	switch {
	case m.Firmware != spec.FirmwareBIOS:
		efi := object{"secureBoot": m.Firmware == spec.FirmwareSecure}
		if rapid.Bool().Draw(t, "kept variables") {
			efi["persistent"] = true
		}
		firmware["bootloader"] = object{"efi": efi}
	case rapid.Bool().Draw(t, "BIOS"):
		firmware["bootloader"] = object{"bios": object{"useSerial": true}}
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
	} else if rapid.Bool().Draw(t, "newest machine type") {
		domain["machine"] = object{"type": rapid.SampledFrom([]string{"", "q35", "pc-q35"}).Draw(t, "type")}
	}
	switch rapid.IntRange(0, 2).Draw(t, "clock") {
	case 1:
		m.RTCBase, domain["clock"] = "utc", object{"utc": object{}}
	case 2:
		m.RTCBase, domain["clock"] = "localtime", object{"timezone": "Europe/Berlin"}
		w.note("domain.clock.timezone")
	}
	switch rapid.IntRange(0, 2).Draw(t, "TPM") {
	case 1:
		m.UseTPM, devices["tpm"] = true, object{"persistent": true}
	case 2:
		devices["tpm"] = object{"enabled": false}
	}
	switch rapid.IntRange(0, 3).Draw(t, "panic device") {
	case 1:
		m.PanicDevice, devices["panicDevices"] = spec.PanicDevicePCI, []object{{"model": "pvpanic"}}
	case 2:
		m.PanicDevice = spec.PanicDeviceISA
		devices["panicDevices"] = []object{rapid.SampledFrom([]object{{"model": "isa"}, {}}).Draw(t, "model")}
	case 3:
		devices["panicDevices"] = []object{{"model": "hyperv"}}
		w.note("domain.devices.panicDevices[0].model")
	}
	if rapid.Bool().Draw(t, "no display") {
		m.Display, devices["autoattachGraphicsDevice"] = &spec.Display{}, false
	}
	if rapid.Bool().Draw(t, "no serial port") {
		m.Serial, devices["autoattachSerialConsole"] = &spec.SerialConsole{Enabled: new(false)}, false
	}
	if rapid.Bool().Draw(t, "what is so anyway") {
		domain["features"] = object{"acpi": object{}, "apic": object{"enabled": true}, "smm": object{"enabled": true}}
		devices["rng"], devices["inputs"] = object{}, []object{{"name": "pointer", "type": "tablet", "bus": "usb"}}
		devices["autoattachMemBalloon"], devices["networkInterfaceMultiqueue"] = true, true
	}
}

// kubevirtVolume draws what is on a disk, and adds the data volume that says so.
func (w *tale) kubevirtVolume(t *rapid.T, i int, name string, templates *[]object) (how string, disk spec.Disk, volume object) {
	size, class := spectest.Bytes(1<<20, 1<<40).Draw(t, "size"), "fast"
	how, volume = "disk", object{"name": name}
	container := "containerDisk"
	if w.old {
		container = "registryDisk"
	}
	made := func(source, more object) {
		volume["dataVolume"] = object{"name": "dv-" + name}
		storage := object{"resources": object{"requests": object{"storage": size}}, "storageClassName": class}
		maps.Copy(storage, more)
		of := object{rapid.SampledFrom([]string{"storage", "pvc"}).Draw(t, "of"): storage, "source": source}
		if w.kind == "VirtualMachine" && rapid.Bool().Draw(t, "template") {
			*templates = append(*templates, object{"metadata": object{"name": "dv-" + name}, "spec": of})
			return
		}
		w.others = append(w.others, object{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": object{"name": "dv-" + name, "namespace": w.ours.Namespace}, "spec": of})
		w.note("volumes[%d].dataVolume", i)
	}
	modes := func() object {
		if !rapid.Bool().Draw(t, "modes") {
			return nil
		}
		disk.VolumeClaimTemplate.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		disk.VolumeClaimTemplate.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		return object{"accessModes": []string{"ReadWriteMany"}, "volumeMode": "Block"}
	}
	claim := func(name string) { disk.PersistentVolumeClaim = &spec.VolumeClaimReference{ClaimName: name} }
	switch rapid.SampledFrom([]string{"claim", "data volume of the cluster", "container", "blank", "clone", "snapshot", "image", "image of a registry", "empty", "CD of a claim", "CD of an image"}).Draw(t, "disk") {
	case "claim":
		claim("c" + name)
		volume["persistentVolumeClaim"] = object{"claimName": "c" + name}
	case "data volume of the cluster":
		claim("c" + name)
		volume["dataVolume"] = object{"name": "c" + name}
	case "container":
		disk.ContainerDisk = &spec.ContainerDisk{Name: name, Image: "quay.example/debian:13", Path: "/disk/a.img", PullPolicy: corev1.PullAlways}
		of := object{"image": "quay.example/debian:13", "path": "/disk/a.img", "imagePullPolicy": "Always"}
		volume[container] = of
		if w.old {
			w.note("volumes[%d].registryDisk", i)
		}
		if rapid.Bool().Draw(t, "credentials") {
			of["imagePullSecret"] = "quay"
			w.note("volumes[%d].%s.imagePullSecret", i, container)
		}
	case "blank":
		disk.VolumeClaimTemplate = claimTemplate(name, size, class)
		made(object{"blank": object{}}, modes())
	case "clone":
		disk.VolumeClaimTemplate = claimTemplate(name, size, class)
		disk.VolumeClaimTemplate.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "golden"}
		made(object{"pvc": object{"name": "golden", "namespace": w.ours.Namespace}}, modes())
	case "snapshot":
		disk.VolumeClaimTemplate = claimTemplate(name, size, class)
		disk.VolumeClaimTemplate.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: "golden"}
		made(object{"snapshot": object{"name": "golden"}}, modes())
	case "image":
		disk.Image = &spec.DiskImage{Name: name, Source: "https://images.example/debian.qcow2", Size: &size, StorageClassName: &class}
		from := object{"url": disk.Image.Source}
		if rapid.Bool().Draw(t, "checksum") {
			disk.Image.Checksum = "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
			from["checksum"] = disk.Image.Checksum
		}
		made(object{"http": from}, object{"accessModes": []string{"ReadWriteOnce"}})
	case "image of a registry":
		disk.Image = &spec.DiskImage{Name: name, Source: "oci://quay.example/debian:13", Size: &size, StorageClassName: &class}
		made(object{"registry": object{"url": "docker://quay.example/debian:13", "pullMethod": "node"}}, nil)
	case "empty":
		disk.VolumeClaimTemplate = claimTemplate(name, size, class)
		disk.VolumeClaimTemplate.Spec.StorageClassName = nil
		volume["emptyDisk"] = object{"capacity": size}
		w.note("volumes[%d].emptyDisk", i)
	case "CD of a claim":
		claim("c" + name)
		how, volume["persistentVolumeClaim"] = "cdrom", object{"claimName": "c" + name}
	case "CD of an image":
		how, disk.Cdrom, volume[container] = "cdrom", &spec.Cdrom{}, object{"image": "quay.example/drivers:1"}
		w.note("volumes[%d].%s", i, container)
		if w.old {
			w.note("volumes[%d].%s", i, container)
		}
	}
	return how, disk, volume
}

func (w *tale) kubevirtDisks(t *rapid.T, theirs, instance, devices object) {
	m := &w.ours.Spec.VM
	disks, volumes, templates := []object{}, []object{}, []object{}
	var loose []spec.Disk // which no disk names: they follow
	named := func(name string) object {
		if w.old {
			return object{"name": "the-disk-" + name, "volumeName": name}
		}
		return object{"name": name}
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "disks") {
		name := fmt.Sprintf("disk-%d", i)
		how, disk, volume := w.kubevirtVolume(t, i, name, &templates)
		volumes = append(volumes, volume)
		if how == "disk" && rapid.Bool().Draw(t, "no disk names it") {
			loose = append(loose, disk)
			continue
		}
		d, at := named(name), fmt.Sprintf("domain.devices.disks[%d].", len(disks))
		switch {
		case how == "cdrom":
			d["cdrom"] = object{"bus": "sata"}
			if disk.Cdrom == nil {
				w.note("%scdrom", at)
			}
		default:
			how = rapid.SampledFrom([]string{"disk", "lun"}).Draw(t, "how")
			bus := rapid.SampledFrom([]string{"", "virtio", "sata", "scsi"}).Draw(t, "bus")
			d[how] = object{"bus": bus}
			if bus == "sata" || bus == "scsi" {
				w.note("%s%s.bus", at, how)
			}
			if how == "lun" {
				w.note("%slun", at)
			}
		}
		if rapid.Bool().Draw(t, "in an order") {
			disk.Bootindex, d["bootOrder"] = new(int32(i+1)), i+1
		}
		m.Disks, disks = append(m.Disks, disk), append(disks, d)
	}
	m.Disks = append(m.Disks, loose...)
	var folders []object
	for i := range rapid.IntRange(0, 2).Draw(t, "folders") {
		name, claim := fmt.Sprintf("folder-%d", i), object{"claimName": "shared"}
		share := spec.Share{Tag: name, PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "shared"}}
		if share.ReadOnly = rapid.Bool().Draw(t, "read only"); share.ReadOnly {
			claim["readOnly"] = true
		}
		m.Shares = append(m.Shares, share)
		volumes, folders = append(volumes, object{"name": name, "persistentVolumeClaim": claim}), append(folders, object{"name": name, "virtiofs": object{}})
		w.note("domain.devices.filesystems[%d]", i)
	}
	if len(folders) > 0 {
		devices["filesystems"] = folders
	}
	at := fmt.Sprintf("volumes[%d].", len(volumes))
	switch rapid.SampledFrom([]string{"", "seed", "sysprep"}).Draw(t, "provisioning") {
	case "seed":
		volume, d := w.kubevirtSeed(t, instance, at), named("seed")
		volume["name"] = "seed"
		if volumes = append(volumes, volume); rapid.Bool().Draw(t, "a disk names the seed") {
			d["disk"] = object{"bus": "virtio"}
			disks = append(disks, d)
		}
	case "sysprep":
		w.ours.Spec.Provisioning = &spec.Provisioning{Type: spec.ProvisioningSysprepRef, SysprepRef: &spec.ProvisioningSecret{Kind: names.KindSecret, Name: "answers"}}
		w.note("%ssysprep", at)
		d := named("answers")
		d["cdrom"] = object{"bus": "sata"}
		volumes, disks = append(volumes, object{"name": "answers", "sysprep": object{"secret": object{"name": "answers"}}}), append(disks, d)
	}
	if len(disks) > 0 {
		devices["disks"] = disks
	}
	if len(volumes) > 0 {
		instance["volumes"] = volumes
	}
	if len(templates) > 0 {
		theirs["dataVolumeTemplates"] = templates
	}
}

// kubevirtSeed draws a seed for cloud-init: what the user and the network have is in it,
// or in a Secret, and the guest may have another name than the machine.
func (w *tale) kubevirtSeed(t *rapid.T, instance object, at string) object {
	kind, seed, c := "cloudInitNoCloud", object{}, &spec.CloudInit{}
	if rapid.Bool().Draw(t, "configuration drive") {
		kind = "cloudInitConfigDrive"
		w.note("%s%s", at, kind)
	}
	at += kind + "."
	another := false
	if rapid.Bool().Draw(t, "hostname") {
		host := rapid.OneOf(rapid.Just(w.ours.Name), spectest.Label()).Draw(t, "host")
		instance["hostname"], c.MetaData, another = host, map[string]string{"local-hostname": host}, host != w.ours.Name
	}
	text := func(field, text string) string {
		if !utf8.ValidString(text) || rapid.Bool().Draw(t, "encoded") {
			field, text = field+"Base64", base64.StdEncoding.EncodeToString([]byte(text))
		}
		seed[field] = text
		return field
	}
	network := rapid.SampledFrom([]string{"", "text", "secret"}).Draw(t, "network")
	switch network {
	case "text":
		c.NetworkConfig = asDocument(t, object{"version": 2, "ethernets": object{"eth0": object{"dhcp4": true}}})
		text("networkData", "ethernets: {eth0: {dhcp4: true}}\nversion: 2\n")
	case "secret":
		c.NetworkConfigFrom = w.secret(t, at, seed, "networkDataSecretRef", "networkdata", "networkData")
	}
	script := ""
	switch rapid.SampledFrom([]string{"nothing", "text", "script", "long script", "archive", "secret"}).Draw(t, "user data") {
	case "text":
		c.UserData = asDocument(t, object{"packages": []string{"nginx"}, "password": "a: b"})
		text("userData", "#cloud-config\npackages: [nginx]\npassword: 'a: b'\n")
	case "script":
		script = "#!/bin/sh\necho " + strings.Repeat("a", rapid.IntRange(0, 2048-len("#!/bin/sh\necho \n")).Draw(t, "letters")) + "\n"
	case "long script":
		script = "#!/bin/sh\necho " + strings.Repeat("a", rapid.IntRange(2048-len("#!/bin/sh\necho \n")+1, 4096).Draw(t, "letters")) + "\n"
	case "archive":
		script = "#!/bin/sh\nexec tar x\n\xff\x00"
	case "secret":
		c.UserDataFrom = w.secret(t, at, seed, "secretRef", "userdata", "userData")
	}
	if script != "" {
		field := text("userData", script)
		if network == "" && !another && len(script) <= 2048 && utf8.ValidString(script) {
			w.ours.Spec.Provisioning = &spec.Provisioning{Type: spec.ProvisioningUserData, UserData: script}
			return object{kind: seed}
		}
		c.UserData = written(t, script)
		w.note("%s%s", at, field)
	}
	w.ours.Spec.CloudInit = c
	return object{kind: seed}
}

// secret draws a reference to a Secret that has a document under one of two keys, and
// that may be among the files.
func (w *tale) secret(t *rapid.T, at string, seed object, field, usual, other string) *spec.CloudInitSource {
	name := "secret-of-" + usual
	seed[field] = object{"name": name}
	out := &spec.CloudInitSource{SecretRef: spec.SecretKeyReference{Name: name, Key: usual}}
	if rapid.Bool().Draw(t, field+" is elsewhere") {
		w.note("%s%s", at, field)
		return out
	}
	out.SecretRef.Key = rapid.SampledFrom([]string{usual, other}).Draw(t, "key")
	in := rapid.SampledFrom([]string{"data", "stringData"}).Draw(t, "in")
	w.others = append(w.others, object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": name, "namespace": w.ours.Namespace}, in: object{out.SecretRef.Key: "e30K"}})
	return out
}

func (w *tale) kubevirtNetworks(t *rapid.T, instance, devices object) {
	m := &w.ours.Spec.VM
	if rapid.Bool().Draw(t, "no network") {
		devices["autoattachPodInterface"] = false
		return
	}
	if rapid.Bool().Draw(t, "the default network") {
		m.Networks = []spec.Network{{User: &spec.UserNetwork{}}}
		return
	}
	var nics, networks []object
	for i, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"pod", "multus"}), 1, 3).Draw(t, "networks") {
		name, mac, model := fmt.Sprintf("net-%d", i), "", ""
		nic := object{"name": name}
		if rapid.Bool().Draw(t, "mac") {
			mac, nic["macAddress"] = "02:00:00:aa:bb:cc", "02-00-00-AA-BB-CC"
		}
		if rapid.Bool().Draw(t, "model") {
			model = "e1000e"
			nic["model"] = model
			if rapid.Bool().Draw(t, "as it was") {
				nic["model"] = object{"type": model}
			}
		}
		binding := rapid.SampledFrom([]string{"masquerade", "bridge"}).Draw(t, "binding")
		nic[binding] = object{}
		if kind == "multus" {
			m.Networks = append(m.Networks, spec.Network{Tap: &spec.TapNetwork{MAC: mac, Device: model}})
			nics, networks = append(nics, nic), append(networks, object{"name": name, "multus": object{"networkName": "lab/lan"}})
			w.note("networks[%d]", i)
			continue
		}
		user := &spec.UserNetwork{MAC: mac, Device: model}
		if binding == "bridge" {
			w.note("domain.devices.interfaces[%d].bridge", i)
		}
		if rapid.Bool().Draw(t, "ports") {
			user.HostForwards = []spec.HostForward{{Protocol: spec.ForwardTCP, HostPort: 22, GuestPort: 22}, {Protocol: spec.ForwardUDP, HostPort: 53, GuestPort: 53}}
			nic["ports"] = []object{{"name": "ssh", "port": 22}, {"protocol": "UDP", "port": 53}}
		}
		m.Networks = append(m.Networks, spec.Network{User: user})
		nics, networks = append(nics, nic), append(networks, object{"name": name, "pod": object{}})
	}
	devices["interfaces"], instance["networks"] = nics, networks
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
	if w.ours.Spec.VM.RTCBase == "utc" { // the other has a note on the machine
		move(domain, "clock", in("clock"), "preferredClockOffset")
	}
	move(devices, "tpm", in("devices"), "preferredTPM")
	for _, of := range []string{"GraphicsDevice", "SerialConsole", "PodInterface"} {
		move(devices, "autoattach"+of, in("devices"), "preferredAutoattach"+of)
	}
	move(domain["cpu"].(object), "features", in("cpu"), "preferredCPUFeatures")
	if nics, has := devices["interfaces"].([]object); has {
		if rapid.Bool().Draw(t, "prefers a model") {
			into("devices")["preferredInterfaceModel"] = "e1000"
			for i, nic := range nics {
				switch n := w.ours.Spec.VM.Networks[i]; {
				case nic["model"] != nil:
				case n.Tap != nil:
					n.Tap.Device = "e1000"
				default:
					n.User.Device = "e1000"
				}
			}
		}
	} else if w.ours.Spec.VM.Networks != nil && rapid.Bool().Draw(t, "prefers a model") {
		into("devices")["preferredInterfaceModel"] = "e1000"
		w.ours.Spec.VM.Networks[0].User.Device = "e1000"
	}
	if len(preference) > 0 && rapid.Bool().Draw(t, "disks of a preference") {
		into("devices")["preferredDiskBus"] = "virtio"
	}
	theirs["preference"] = w.beside(t, "Preference", preference)
}

// typed moves CPUs, memory and nodes into the machine's instance type, which is beside it,
// and reports whether it has one.
func (w *tale) typed(t *rapid.T, theirs, instance, domain object) bool {
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
		return false // which no preference says
	}
	if len(preferred) > 0 {
		if theirs["preference"] != nil { // one preference is enough
			return false
		}
		theirs["preference"] = w.beside(t, "Preference", object{"cpu": preferred})
	}
	sizes := object{"cpu": object{"guest": sockets * cores * threads}, "memory": domain["memory"]}
	delete(domain, "memory")
	for _, field := range []string{"sockets", "cores", "threads"} {
		delete(cpu, field)
	}
	if model, has := cpu["model"]; has && model != "host-model" && rapid.Bool().Draw(t, "model of the type") {
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
	if rapid.Bool().Draw(t, "annotations of the type") {
		if w.ours.Annotations == nil {
			w.ours.Annotations = map[string]string{}
		}
		w.ours.Annotations["of.example/the-type"] = "a"
		sizes["annotations"] = object{"of.example/the-type": "a"}
	}
	theirs["instancetype"] = w.beside(t, "Instancetype", sizes)
	return true
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
