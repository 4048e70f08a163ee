package kindtest

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// Kind is one of [spec.Kinds], and what tests of all of them need of it.
type Kind struct {
	spec.Kind
	// Draw generates its objects.
	Draw *rapid.Generator[spec.TypedObject]
	// Mistakes that can be made in any of them. Machines have a table of their own, in the
	// tests of package spec.
	Mistakes []Mistake
}

// Kinds returns all [spec.Kinds]. It fails the test for one that nothing is known of.
func Kinds(t testing.TB) []Kind {
	t.Helper()
	rows := map[string]Kind{
		spec.KindVirtualMachine: {Draw: typed(spectest.VirtualMachine())},
		spec.KindVMPool:         {Draw: typed(spectest.Pool()), Mistakes: pools()},
		spec.KindOperation:      {Draw: typed(spectest.Operation()), Mistakes: operations()},
		spec.KindClass:          {Draw: typed(spectest.Class()), Mistakes: classes()},
		spec.KindDisk:           {Draw: typed(spectest.Disk()), Mistakes: disks()},
		spec.KindImage:          {Draw: typed(spectest.Image()), Mistakes: images()},
		spec.KindClusterImage:   {Draw: typed(spectest.ClusterImage()), Mistakes: clusterImages()},
		spec.KindAttachment:     {Draw: typed(spectest.Attachment()), Mistakes: attachments()},
	}
	var kinds []Kind
	for _, k := range spec.Kinds() {
		row := rows[k.Name]
		if row.Draw == nil || row.Mistakes == nil && k.Name != spec.KindVirtualMachine {
			t.Fatalf("a %s has no generator, or no mistakes", k.Name)
		}
		row.Kind = k
		kinds = append(kinds, row)
	}
	return kinds
}

func typed[P spec.TypedObject](g *rapid.Generator[P]) *rapid.Generator[spec.TypedObject] {
	return rapid.Map(g, func(p P) spec.TypedObject { return p })
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
	})
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
	size := func(what, field string, p ...spec.SizingPolicy) {
		m.add(what, "spec.sizingPolicies"+field, func(c *class) { c.Spec.SizingPolicies = p })
	}
	cores := spec.CoreRange{Min: 1, Max: 8}
	size("no CPUs at least", "[0].cores.min", spec.SizingPolicy{Cores: spec.CoreRange{Max: 8}})
	size("more CPUs than a machine has", "[0].cores.max", spec.SizingPolicy{Cores: spec.CoreRange{Min: 1, Max: limits.MaxCPUs + 1}})
	size("more CPUs at least than at most", "[0].cores.min", spec.SizingPolicy{Cores: spec.CoreRange{Min: 3, Max: 2}})
	size("steps back", "[0].cores.step", spec.SizingPolicy{Cores: spec.CoreRange{Min: 1, Max: 8, Step: -1}})
	size("numbers of CPUs with two policies", "[1].cores", spec.SizingPolicy{Cores: cores}, spec.SizingPolicy{Cores: cores})
	size("a fraction of all and more", "[0].coreFractions[0]", spec.SizingPolicy{Cores: cores, CoreFractions: []string{"101%"}})
	size("a fraction twice", "[0].coreFractions[1]", spec.SizingPolicy{Cores: cores, CoreFractions: []string{"10%", "10%"}})
	size("another fraction by default", "[0].defaultCoreFraction", spec.SizingPolicy{Cores: cores, CoreFractions: []string{"10%"}, DefaultCoreFraction: "20%"})
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
