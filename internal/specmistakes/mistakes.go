package specmistakes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

// Mistake is something wrong that can be done to any valid object of a kind.
type Mistake struct {
	// What is wrong.
	What string
	// Make does it and returns the path of the field.
	Make func(spec.TypedObject) string
	// Stored is why the API server takes the object nevertheless; empty if it refuses it,
	// too.
	Stored string
}

// Why the API server takes what the library finds something wrong with.
const (
	noPattern = "the definition has no pattern of names"
	noReading = "the definition does not look into the text"
	noSelf    = "a rule about spec does not know the name of the object"
	noBytes   = "the definition counts letters, and programs bytes"
	noRule    = "the definition has no rule of it"
	noMatter  = "what is the cluster's is stored without its namespace"
)

// Of returns the mistakes in objects of a kind. Machines have a table of their own, in the
// tests of package spec.
func Of(kind string) []Mistake {
	switch kind {
	case spec.KindDisk:
		return disks()
	case spec.KindImage:
		return images()
	case spec.KindClusterImage:
		return clusterImages()
	case spec.KindAttachment:
		return attachments()
	case spec.KindOperation:
		return operations()
	case spec.KindClass:
		return classes()
	case spec.KindVMPool:
		return pools()
	}
	return nil
}

// table is built by kind, so that each mistake has the type of its objects.
type table[P spec.TypedObject] []Mistake

// add adds a mistake that the API server finds, too, unless it is said why not.
func (m *table[P]) add(what, field string, do func(P), stored ...string) {
	*m = append(*m, Mistake{
		What: what, Stored: strings.Join(stored, ""),
		Make: func(object spec.TypedObject) string {
			if p, is := object.(P); is {
				do(p)
			}
			return field
		},
	})
}

// names adds what may be wrong with the name of any object.
func (m *table[P]) names(most int) {
	const name = "metadata.name"
	m.add("no name", name, func(p P) { p.SetName(""); p.SetGenerateName("") })
	m.add("a name with capitals", name, func(p P) { p.SetName("Web") })
	m.add("a name with a dash at its end", name, func(p P) { p.SetName("web-") })
	m.add("a name of two words", name, func(p P) { p.SetName("a b") })
	m.add("a long name", name, func(p P) { p.SetName(strings.Repeat("a", most+1)) })
}

// namespaces adds what may be wrong with the namespace of what is in one.
func (m *table[P]) namespaces() {
	m.add("a namespace with a dot", "metadata.namespace", func(p P) { p.SetNamespace("a.b") })
	m.add("a namespace with a long name", "metadata.namespace", func(p P) { p.SetNamespace(strings.Repeat("a", 64)) })
}

// sources adds what may be wrong with a source, which set gives an object.
func (m *table[P]) sources(set func(P, spec.VirtualDiskSource)) {
	const path = "spec.dataSource."
	source := func(what, field string, s spec.VirtualDiskSource, stored ...string) {
		m.add(what, path+field, func(p P) { set(p, *s.DeepCopy()) }, stored...)
	}
	web := &spec.VirtualDiskHTTP{URL: "http://a.test/a"}
	image := &spec.VirtualDiskContainerImage{Image: "debian"}
	source("no type", "type", spec.VirtualDiskSource{HTTP: web})
	source("an unknown type", "type", spec.VirtualDiskSource{Type: "S3"})
	source("a type in small letters", "type", spec.VirtualDiskSource{Type: "http", HTTP: web})
	source("no server", "http", spec.VirtualDiskSource{Type: spec.DiskSourceHTTP})
	source("no container image", "containerImage", spec.VirtualDiskSource{Type: spec.DiskSourceContainerImage})
	source("two sources", "containerImage", spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: web, ContainerImage: image})
	source("the other of two sources", "http", spec.VirtualDiskSource{Type: spec.DiskSourceContainerImage, HTTP: web, ContainerImage: image})
	source("another object beside a server", "objectRef", spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: web, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: "a"}})
	source("an upload beside a server", "upload", spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: web, Upload: &spec.VirtualDiskUpload{}})

	server := func(what, field string, h spec.VirtualDiskHTTP, stored ...string) {
		source(what, "http."+field, spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &h}, stored...)
	}
	server("no URL", "url", spec.VirtualDiskHTTP{})
	server("a URL of FTP", "url", spec.VirtualDiskHTTP{URL: "ftp://a.test/a"})
	server("a URL of no server", "url", spec.VirtualDiskHTTP{URL: "http:///a"}, noReading)
	server("a URL with a password", "url", spec.VirtualDiskHTTP{URL: "https://u:p@a.test/a"}, noReading)
	server("a URL with a line break", "url", spec.VirtualDiskHTTP{URL: "https://a.test/a\nb"}, noReading)
	server("a long URL", "url", spec.VirtualDiskHTTP{URL: "https://a.test/" + strings.Repeat("a", 4096)})
	server("a checksum of nothing", "checksum", spec.VirtualDiskHTTP{URL: web.URL, Checksum: &spec.VirtualDiskChecksum{}})
	server("two checksums", "checksum", spec.VirtualDiskHTTP{URL: web.URL, Checksum: &spec.VirtualDiskChecksum{SHA256: strings.Repeat("0f", 32), SHA512: strings.Repeat("0f", 64)}})
	server("a short checksum", "checksum", spec.VirtualDiskHTTP{URL: web.URL, Checksum: &spec.VirtualDiskChecksum{SHA256: strings.Repeat("0f", 31)}})
	server("a checksum with other letters", "checksum", spec.VirtualDiskHTTP{URL: web.URL, Checksum: &spec.VirtualDiskChecksum{SHA512: strings.Repeat("xy", 64)}})
	server("certificates that are none", "caBundle", spec.VirtualDiskHTTP{URL: web.URL, CABundle: "a.pem"}, noReading)
	server("many certificates", "caBundle", spec.VirtualDiskHTTP{URL: web.URL, CABundle: certificates()})
	server("many certificates of wide letters", "caBundle", spec.VirtualDiskHTTP{URL: web.URL, CABundle: wide()}, noBytes)

	container := func(what, field string, c spec.VirtualDiskContainerImage, stored ...string) {
		source(what, "containerImage."+field, spec.VirtualDiskSource{Type: spec.DiskSourceContainerImage, ContainerImage: &c}, stored...)
	}
	container("no image", "image", spec.VirtualDiskContainerImage{})
	container("an image of two words", "image", spec.VirtualDiskContainerImage{Image: "a b"}, noReading)
	container("an image that is a file", "image", spec.VirtualDiskContainerImage{Image: "oci-archive:disk.tar"}, noReading)
	container("an image with a scheme", "image", spec.VirtualDiskContainerImage{Image: "oci://quay.io/disks/debian"}, noReading)
	container("a long image", "image", spec.VirtualDiskContainerImage{Image: strings.Repeat("a", 4096) + ".test/disks/debian"})
	container("a directory in an image", "path", spec.VirtualDiskContainerImage{Image: "debian", Path: "/disk/"}, noReading)
	container("a path out of an image", "path", spec.VirtualDiskContainerImage{Image: "debian", Path: "/disk/../../a"}, noReading)
	container("a long path", "path", spec.VirtualDiskContainerImage{Image: "debian", Path: "/" + strings.Repeat("a", 1024)})
	container("a Secret of no name", "imagePullSecret.name", spec.VirtualDiskContainerImage{Image: "debian", ImagePullSecret: &spec.VirtualDiskPullSecret{}})
	container("a Secret with capitals", "imagePullSecret.name", spec.VirtualDiskContainerImage{Image: "debian", ImagePullSecret: &spec.VirtualDiskPullSecret{Name: "Pull"}}, noPattern)
	container("many certificates of a registry", "caBundle", spec.VirtualDiskContainerImage{Image: "debian", CABundle: certificates()})
	container("many certificates of a registry with wide letters", "caBundle", spec.VirtualDiskContainerImage{Image: "debian", CABundle: wide()}, noBytes)
}

// certificates are more than there may be, by one letter.
func certificates() string {
	const begin = "-----BEGIN CERTIFICATE-----\n"
	return begin + strings.Repeat("#", limits.MaxCABundle+1-len(begin))
}

// wide are certificates with as many letters as there may be, and more bytes.
func wide() string {
	const begin = "-----BEGIN CERTIFICATE-----\n"
	return begin + strings.Repeat("ü", limits.MaxCABundle-len(begin))
}

// objects adds what may be wrong with another object as the source, and with an upload.
func (m *table[P]) objects(set func(P, spec.VirtualDiskSource)) {
	const path = "spec.dataSource."
	ref := func(what, field string, r spec.VirtualDiskObjectRef, stored ...string) {
		m.add(what, path+"objectRef."+field, func(p P) {
			set(p, spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &r})
		}, stored...)
	}
	m.add("no other object", path+"objectRef", func(p P) { set(p, spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef}) })
	ref("an object of no kind", "kind", spec.VirtualDiskObjectRef{Name: "a"})
	ref("an object of an unknown kind", "kind", spec.VirtualDiskObjectRef{Kind: "VirtualDiskSnapshot", Name: "a"})
	ref("a disk of no name", "name", spec.VirtualDiskObjectRef{Kind: spec.KindDisk})
	ref("a disk with capitals", "name", spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: "A"}, noPattern)
	ref("an image with a long name", "name", spec.VirtualDiskObjectRef{Kind: spec.KindImage, Name: strings.Repeat("a", spec.MaxDiskName+1)})
	ref("the format of a disk", "format", spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: "a", Format: "raw"})
	m.add("the checksum of an upload twice", path+"upload.checksum", func(p P) {
		set(p, spec.VirtualDiskSource{Type: spec.DiskSourceUpload, Upload: &spec.VirtualDiskUpload{
			Checksum: &spec.VirtualDiskChecksum{SHA256: strings.Repeat("0f", 32), SHA512: strings.Repeat("0f", 64)},
		}})
	})
}

// claims adds what may be wrong with the claim that is made.
func (m *table[P]) claims(of func(P) (size *resource.Quantity, class **string)) {
	const size, class = "spec.persistentVolumeClaim.size", "spec.persistentVolumeClaim.storageClassName"
	set := func(text string) func(P) {
		return func(p P) { s, _ := of(p); *s = resource.MustParse(text) }
	}
	m.add("no size", size, func(p P) { s, _ := of(p); *s = resource.Quantity{} })
	m.add("a size of nothing", size, set("0"))
	m.add("a size of nothing in gibibytes", size, set("0Gi"))
	m.add("less than nothing", size, set("-1Gi"))
	m.add("part of a byte", size, set("1500m"), "the definition takes any quantity greater than 0")
	m.add("a storage class with capitals", class, func(p P) { _, c := of(p); *c = new("Fast") }, noPattern)
	m.add("a storage class of two words", class, func(p P) { _, c := of(p); *c = new("a b") }, noPattern)
	m.add("a storage class with a long name", class, func(p P) { _, c := of(p); *c = new(strings.Repeat("a", 254)) })
}

func disks() []Mistake {
	var m table[*spec.VirtualDisk]
	m.names(spec.MaxDiskName)
	m.namespaces()
	m.claims(func(d *spec.VirtualDisk) (*resource.Quantity, **string) {
		return &d.Spec.PersistentVolumeClaim.Size, &d.Spec.PersistentVolumeClaim.StorageClassName
	})
	set := func(d *spec.VirtualDisk, s spec.VirtualDiskSource) {
		d.Spec.DataSource, d.Spec.PersistentVolumeClaim.VolumeMode = &s, nil
	}
	m.sources(set)
	m.objects(set)
	m.add("a copy of itself", "spec.dataSource.objectRef.name", func(d *spec.VirtualDisk) {
		set(d, spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: d.Name}})
	}, noSelf)

	const mode = "spec.persistentVolumeClaim.volumeMode"
	block := func(what, field string, s spec.VirtualDiskSource, stored ...string) {
		m.add(what, field, func(d *spec.VirtualDisk) {
			set(d, *s.DeepCopy())
			d.Spec.PersistentVolumeClaim.VolumeMode = new(corev1.PersistentVolumeBlock)
		}, stored...)
	}
	m.add("an unknown volume mode", mode, func(d *spec.VirtualDisk) {
		d.Spec.PersistentVolumeClaim.VolumeMode = new(corev1.PersistentVolumeMode("File"))
		d.Spec.DataSource = nil
	})
	block("a block device of an upload", mode, spec.VirtualDiskSource{Type: spec.DiskSourceUpload})
	block("a block device of an image of the cluster", mode, spec.VirtualDiskSource{
		Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindClusterImage, Name: "a"},
	}, noRule)
	snapshot := func(format string) spec.VirtualDiskSource {
		return spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindVolumeSnapshot, Name: "a", Format: format}}
	}
	block("a block device of qcow2", "spec.dataSource.objectRef.format", snapshot("qcow2"))
	m.add("a snapshot of an unknown format", "spec.dataSource.objectRef.format", func(d *spec.VirtualDisk) { set(d, snapshot("vmdk")) })
	m.add("a snapshot of no name", "spec.dataSource.objectRef.name", func(d *spec.VirtualDisk) {
		s := snapshot("")
		s.ObjectRef.Name = ""
		set(d, s)
	})
	return m
}

func images() []Mistake {
	var m table[*spec.VirtualImage]
	m.names(spec.MaxDiskName)
	m.namespaces()
	m.claims(func(i *spec.VirtualImage) (*resource.Quantity, **string) {
		return &i.Spec.PersistentVolumeClaim.Size, &i.Spec.PersistentVolumeClaim.StorageClassName
	})
	set := func(i *spec.VirtualImage, s spec.VirtualDiskSource) { i.Spec.DataSource = s }
	m.sources(set)
	m.objects(set)
	m.add("no source", "spec.dataSource.type", func(i *spec.VirtualImage) { set(i, spec.VirtualDiskSource{}) })
	m.add("a copy of itself", "spec.dataSource.objectRef.name", func(i *spec.VirtualImage) {
		set(i, spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindImage, Name: i.Name}})
	}, noSelf)
	m.add("an image of a snapshot", "spec.dataSource.objectRef.kind", func(i *spec.VirtualImage) {
		set(i, spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindVolumeSnapshot, Name: "a"}})
	})
	m.add("an access mode of readers", "spec.persistentVolumeClaim.accessMode", func(i *spec.VirtualImage) {
		i.Spec.PersistentVolumeClaim.AccessMode = corev1.ReadOnlyMany
	})
	return m
}

func clusterImages() []Mistake {
	var m table[*spec.ClusterVirtualImage]
	m.names(spec.MaxClusterImageName)
	m.claims(func(i *spec.ClusterVirtualImage) (*resource.Quantity, **string) {
		return &i.Spec.PersistentVolumeClaim.Size, &i.Spec.PersistentVolumeClaim.StorageClassName
	})
	set := func(i *spec.ClusterVirtualImage, s spec.VirtualDiskSource) { i.Spec.DataSource = s }
	m.sources(set)
	m.add("no source", "spec.dataSource.type", func(i *spec.ClusterVirtualImage) { set(i, spec.VirtualDiskSource{}) })
	m.add("a namespace", "metadata.namespace", func(i *spec.ClusterVirtualImage) { i.Namespace = "default" }, noMatter)
	m.add("a copy of an image of a namespace", "spec.dataSource.objectRef", func(i *spec.ClusterVirtualImage) {
		set(i, spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindImage, Name: "a"}})
	})
	m.add("an upload", "spec.dataSource.type", func(i *spec.ClusterVirtualImage) {
		set(i, spec.VirtualDiskSource{Type: spec.DiskSourceUpload})
	})
	m.add("an unknown access mode", "spec.persistentVolumeClaim.accessMode", func(i *spec.ClusterVirtualImage) {
		i.Spec.PersistentVolumeClaim.AccessMode = "RWX"
	})
	return m
}

func attachments() []Mistake {
	type attachment = spec.VirtualMachineBlockDeviceAttachment
	var m table[*attachment]
	m.names(spec.MaxAttachmentName)
	m.namespaces()
	const machine, kind, disk = "spec.virtualMachineName", "spec.blockDeviceRef.kind", "spec.blockDeviceRef.name"
	m.add("no machine", machine, func(a *attachment) { a.Spec.VirtualMachineName = "" })
	m.add("a machine with capitals", machine, func(a *attachment) { a.Spec.VirtualMachineName = "Web" }, noPattern)
	m.add("a machine with a long name", machine, func(a *attachment) { a.Spec.VirtualMachineName = strings.Repeat("a", 254) })
	m.add("no kind", kind, func(a *attachment) { a.Spec.BlockDeviceRef.Kind = "" })
	m.add("an image", kind, func(a *attachment) { a.Spec.BlockDeviceRef.Kind = spec.KindImage })
	m.add("no disk", disk, func(a *attachment) { a.Spec.BlockDeviceRef.Name = "" })
	m.add("a disk with capitals", disk, func(a *attachment) { a.Spec.BlockDeviceRef.Name = "Data" }, noPattern)
	m.add("a disk with a long name", disk, func(a *attachment) { a.Spec.BlockDeviceRef.Name = strings.Repeat("a", 254) })
	return m
}

func operations() []Mistake {
	type operation = spec.VirtualMachineOperation
	var m table[*operation]
	m.names(253)
	m.namespaces()
	m.add("a beginning of a name with capitals", "metadata.generateName", func(o *operation) { o.Name, o.GenerateName = "", "Web-" })
	m.add("a beginning of a name of two words", "metadata.generateName", func(o *operation) { o.Name, o.GenerateName = "", "a b" })
	m.add("no type", "spec.type", func(o *operation) { o.Spec.Type, o.Spec.Force = "", false })
	m.add("an unknown type", "spec.type", func(o *operation) { o.Spec.Type, o.Spec.Force = "Reboot", false })
	m.add("no machine", "spec.virtualMachineName", func(o *operation) { o.Spec.VirtualMachineName = "" })
	m.add("a machine of two words", "spec.virtualMachineName", func(o *operation) { o.Spec.VirtualMachineName = "a b" }, noPattern)
	m.add("a machine with a long name", "spec.virtualMachineName", func(o *operation) { o.Spec.VirtualMachineName = strings.Repeat("a", 254) })
	m.add("a start that is forced", "spec.force", func(o *operation) { o.Spec.Type, o.Spec.Force = spec.OperationStart, true })
	return m
}

func classes() []Mistake {
	type class = spec.VirtualMachineClass
	var m table[*class]
	m.names(253)
	m.add("a namespace", "metadata.namespace", func(c *class) { c.Namespace = "default" }, noMatter)
	m.add("a default of yes", "metadata.annotations["+names.AnnotationDefaultClass+"]", func(c *class) {
		c.Annotations = map[string]string{names.AnnotationDefaultClass: "yes"}
	}, "the definition knows nothing of annotations")
	cpu := func(what, field string, cpu spec.ClassCPU) {
		m.add(what, "spec.cpu."+field, func(c *class) { c.Spec.CPU = cpu.DeepCopy() })
	}
	cpu("a processor of no type", "type", spec.ClassCPU{})
	cpu("a processor of an unknown type", "type", spec.ClassCPU{Type: "Discovery"})
	cpu("no model", "model", spec.ClassCPU{Type: spec.ClassCPUModel})
	cpu("the model of the node", "model", spec.ClassCPU{Type: spec.ClassCPUHost, Model: "max"})
	cpu("a model with features", "model", spec.ClassCPU{Type: spec.ClassCPUModel, Model: "max,-avx"})
	cpu("a long model", "model", spec.ClassCPU{Type: spec.ClassCPUModel, Model: strings.Repeat("a", 65)})
	cpu("no features", "features", spec.ClassCPU{Type: spec.ClassCPUFeatures})
	cpu("features of the node", "features", spec.ClassCPU{Type: spec.ClassCPUHostPassthrough, Features: []string{"avx"}})
	cpu("a feature of two words", "features[1]", spec.ClassCPU{Type: spec.ClassCPUFeatures, Features: []string{"avx", "a b"}})
	cpu("a long feature", "features[0]", spec.ClassCPU{Type: spec.ClassCPUFeatures, Features: []string{strings.Repeat("a", 33)}})
	cpu("a feature twice", "features[1]", spec.ClassCPU{Type: spec.ClassCPUFeatures, Features: []string{"avx", "avx"}})
	sizes := func(what, field string, p []spec.SizingPolicy, stored ...string) {
		m.add(what, "spec.sizingPolicies"+field, func(c *class) { c.Spec.SizingPolicies = p }, stored...)
	}
	size := func(what, field string, p ...spec.SizingPolicy) { sizes(what, field, p) }
	cores := spec.CoreRange{Min: 1, Max: 8}
	size("no CPUs at least", "[0].cores.min", spec.SizingPolicy{Cores: spec.CoreRange{Max: 8}})
	size("more CPUs than a machine has", "[0].cores.max", spec.SizingPolicy{Cores: spec.CoreRange{Min: 1, Max: limits.MaxCPUs + 1}})
	size("more CPUs at least than at most", "[0].cores.min", spec.SizingPolicy{Cores: spec.CoreRange{Min: 3, Max: 2}})
	size("steps back", "[0].cores.step", spec.SizingPolicy{Cores: spec.CoreRange{Min: 1, Max: 8, Step: -1}})
	size("numbers of CPUs with two policies", "[1].cores", spec.SizingPolicy{Cores: cores}, spec.SizingPolicy{Cores: cores})
	size("a fraction of all and more", "[0].coreFractions[0]", spec.SizingPolicy{Cores: cores, CoreFractions: []string{"101%"}})
	size("a fraction twice", "[0].coreFractions[1]", spec.SizingPolicy{Cores: cores, CoreFractions: []string{"10%", "10%"}})
	sizes("another fraction by default", "[0].defaultCoreFraction", []spec.SizingPolicy{{Cores: cores, CoreFractions: []string{"10%"}, DefaultCoreFraction: "20%"}}, noRule)
	return m
}

func pools() []Mistake {
	var m table[*spec.VmPool]
	m.names(253)
	m.namespaces()
	retention := func(what, text string, stored ...string) {
		m.add(what, "spec.retention", func(p *spec.VmPool) { p.Spec.Retention = text }, stored...)
	}
	retention("a retention in words", "an hour")
	retention("a retention of no number", "P1DT")
	retention("a retention of more than time has", "P10000Y", noReading)
	retention("a long retention", "PT"+strings.Repeat("0", 64)+"1H")
	permission := func(what, field string, of ...spec.PoolPermission) {
		m.add(what, "spec.permissions"+field, func(p *spec.VmPool) { p.Spec.Permissions = of })
	}
	permission("no permissions", "")
	permission("a permission of nobody", "[0]", spec.PoolPermission{})
	permission("a permission of two", "[0]", spec.PoolPermission{User: "a", Role: "b"})
	permission("an unknown action", "[0].may[1]", spec.PoolPermission{User: "a", May: []spec.PoolAction{spec.PoolActionStart, "takeConsole"}})
	permission("a user with a long name", "[1].user", spec.PoolPermission{User: "a"}, spec.PoolPermission{User: strings.Repeat("a", 1025)})
	permission("a role with a long name", "[0].role", spec.PoolPermission{Role: strings.Repeat("ü", 1025)})
	permission("many actions", "[0].may", spec.PoolPermission{User: "a", May: slices.Repeat([]spec.PoolAction{spec.PoolActionStart}, 65)})
	permission("many permissions", "", slices.Repeat([]spec.PoolPermission{{User: "a"}}, 1025)...)
	return m
}
