package crdtest

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vmop/sdk/vmop/spec"
)

// One mistake in a machine that is right otherwise. The API server refuses it
// with a message that leads to the mistake, and spec.Validate agrees.
func TestOneMistakeIsRefused(t *testing.T) {
	const vm = "{maximumCpus: 2}"
	for what, c := range map[string]struct {
		spec  string // YAML
		name  string // of the machine, if that matters
		field string // that the API server names as the cause
		says  string
	}{
		"neither CPUs nor topology":   {spec: "{vm: {}}", field: "spec.vm", says: "give exactly one of maximumCpus and cpuTopology"},
		"both CPUs and topology":      {spec: "{vm: {maximumCpus: 2, cpuTopology: {sockets: 2}}}", field: "spec.vm", says: "give exactly one of maximumCpus and cpuTopology"},
		"more CPUs than possible":     {spec: "{vm: {maximumCpus: 2, currentCpus: 3}}", field: "spec.vm", says: "currentCpus must not be greater than maximumCpus"},
		"more CPUs than Go can read":  {spec: "{vm: {maximumCpus: 2147483648}}", field: "spec.vm.maximumCpus", says: "less than or equal to 4096"},
		"boot order beyond reading":   {spec: "{vm: {maximumCpus: 1, disks: [{cdrom: {image: a}, bootindex: 2147483648}]}}", field: "spec.vm.disks[0].bootindex", says: "less than or equal to 2147483647"},
		"no CPU now":                  {spec: "{vm: {maximumCpus: 2, currentCpus: 0}}", field: "spec.vm.currentCpus", says: "greater than or equal to 1"},
		"more memory than possible":   {spec: "{vm: {maximumCpus: 1, maximumRam: 1Gi, currentRam: 2Gi}}", field: "spec.vm", says: "currentRam must not be greater than maximumRam"},
		"more memory than by default": {spec: "{vm: {maximumCpus: 1, currentRam: 1Gi}}", field: "spec.vm", says: "currentRam must not be greater than maximumRam"},
		"more bytes than possible":    {spec: "{vm: {maximumCpus: 1, maximumRam: 10000000, currentRam: 10000001}}", field: "spec.vm", says: "currentRam must not be greater than maximumRam"},
		"memory in the wrong unit":    {spec: "{vm: {maximumCpus: 1, maximumRam: 256}}", field: "spec.vm", says: "maximumRam must be at least 4Mi"},
		"disk without a size":         {spec: "{vm: {maximumCpus: 1, disks: [{cdrom: {image: a}}, {volumeClaimTemplate: {metadata: {name: a}}}]}}", field: "spec.vm.disks", says: "each volumeClaimTemplate needs a size"},
		"disk with another size":      {spec: "{vm: {maximumCpus: 1, disks: [{volumeClaimTemplate: {spec: {resources: {requests: {cpu: 1}}}}}]}}", field: "spec.vm.disks", says: "each volumeClaimTemplate needs a size"},
		"two disks of one name":       {spec: "{vm: {maximumCpus: 1, disks: [{volumeClaimTemplate: {metadata: {name: a}, spec: {resources: {requests: {storage: 1Gi}}}}}, {cdrom: {image: a}}, {volumeClaimTemplate: {metadata: {name: a}, spec: {resources: {requests: {storage: 2Gi}}}}}]}}", field: "spec.vm.disks", says: "volumeClaimTemplates must have different metadata.names"},
		"a claim twice":               {spec: "{vm: {maximumCpus: 1, disks: [{persistentVolumeClaim: {claimName: a}}, {persistentVolumeClaim: {claimName: a}}]}}", field: "spec.vm.disks", says: "a persistentVolumeClaim can be one disk of a machine only"},
		"an image for a disk":         {spec: "{blockDeviceRefs: [{kind: ClusterVirtualImage, name: a}], vm: " + vm + "}", field: "spec.blockDeviceRefs[0]", says: "of a ClusterVirtualImage make"},
		"a reference twice":           {spec: "{blockDeviceRefs: [{kind: VirtualDisk, name: a}, {kind: VirtualDisk, name: b}, {kind: VirtualDisk, name: a}], vm: " + vm + "}", field: "spec.blockDeviceRefs", says: "the same disk"},
		"a reference to no disk":      {spec: "{blockDeviceRefs: [{kind: VirtualDisk}], vm: " + vm + "}", field: "spec.blockDeviceRefs[0].name", says: "Required value"},
		"a disk before the first":     {spec: "{blockDeviceRefs: [{kind: VirtualDisk, name: a, bootOrder: 0}], vm: " + vm + "}", field: "spec.blockDeviceRefs[0].bootOrder", says: "greater than or equal to 1"},
		"unknown policy":              {spec: "{deletionPolicy: Recycle, vm: " + vm + "}", field: "spec.deletionPolicy", says: `supported values: "Retain", "Delete"`},
		"memory without a number":     {spec: "{vm: {maximumCpus: 1, maximumRam: much}}", field: "spec.vm.maximumRam", says: "should match"},
		"memory without an end":       {spec: "{vm: {maximumCpus: 1, maximumRam: 1e200000000, currentRam: 1}}", field: "spec.vm.maximumRam", says: "should match"},
		"memory now without an end":   {spec: "{vm: {maximumCpus: 1, currentRam: 1e2147483647}}", field: "spec.vm.currentRam", says: "should match"},
		"memory without a beginning":  {spec: "{vm: {maximumCpus: 1, currentRam: '1e-2147483647'}}", field: "spec.vm.currentRam", says: "should match"},
		"a very long zero":            {spec: "{vm: {maximumCpus: 1, currentRam: '0e2147483647'}}", field: "spec.vm.currentRam", says: "should match"},
		"more digits than any amount": {spec: "{vm: {maximumCpus: 1, maximumRam: '" + strings.Repeat("9", 33) + "'}}", field: "spec.vm.maximumRam", says: "Too long"},
		"a resource without an end":   {spec: "{resources: {limits: {memory: 1e200000000}}, vm: {maximumCpus: 1}}", field: "spec.resources.limits.memory", says: "should match"},
		"a disk without an end":       {spec: "{vm: {maximumCpus: 1, disks: [{volumeClaimTemplate: {spec: {resources: {requests: {storage: 1e200000000}}}}}]}}", field: "spec.vm.disks[0].volumeClaimTemplate.spec.resources.requests.storage", says: "should match"},
		"network of no kind":          {spec: "{vm: {maximumCpus: 1, networks: [{}]}}", field: "spec.vm.networks[0]", says: "give exactly one of tap and user"},
		"network of two kinds":        {spec: "{vm: {maximumCpus: 1, networks: [{user: {}}, {tap: {}, user: {}}]}}", field: "spec.vm.networks[1]", says: "give exactly one of tap and user"},
		"letter in the MAC address":   {spec: "{vm: {maximumCpus: 1, networks: [{tap: {mac: '52:54:00:00:00:0g'}}]}}", field: "spec.vm.networks[0].tap.mac", says: "should match"},
		"port without a guest":        {spec: "{vm: {maximumCpus: 1, networks: [{user: {hostForwards: [{hostPort: 22}]}}]}}", field: "spec.vm.networks[0].user.hostForwards[0].guestPort", says: "Required value"},
		"port out of range":           {spec: "{vm: {maximumCpus: 1, networks: [{user: {hostForwards: [{hostPort: 65536, guestPort: 1}]}}]}}", field: "spec.vm.networks[0].user.hostForwards[0].hostPort", says: "less than or equal to 65535"},
		"disk of no kind":             {spec: "{vm: {maximumCpus: 1, disks: [{bootindex: 1}]}}", field: "spec.vm.disks[0]", says: "give exactly one of volumeClaimTemplate, persistentVolumeClaim, cdrom, image and containerDisk"},
		"disk of two kinds":           {spec: "{vm: {maximumCpus: 1, disks: [{cdrom: {image: a}}, {cdrom: {image: a}, persistentVolumeClaim: {claimName: b}}]}}", field: "spec.vm.disks[1]", says: "give exactly one of volumeClaimTemplate, persistentVolumeClaim, cdrom, image and containerDisk"},
		"drive without an image":      {spec: "{vm: {maximumCpus: 1, disks: [{cdrom: {}}]}}", field: "spec.vm.disks[0].cdrom.image", says: "Required value"},
		"unknown volume mode":         {spec: "{vm: {maximumCpus: 1, disks: [{volumeClaimTemplate: {spec: {volumeMode: Tape}}}]}}", field: "spec.vm.disks[0].volumeClaimTemplate.spec.volumeMode", says: `supported values: "Block", "Filesystem"`},
		"boot order below zero":       {spec: "{vm: {maximumCpus: 1, disks: [{cdrom: {image: a}, bootindex: -1}]}}", field: "spec.vm.disks[0].bootindex", says: "greater than or equal to 0"},
		"unknown state":               {spec: "{vm: {maximumCpus: 1, state: Paused}}", field: "spec.vm.state", says: `supported values: "Stopped", "Running"`},
		"unknown firmware":            {spec: "{vm: {maximumCpus: 1, firmware: coreboot}}", field: "spec.vm.firmware", says: `"uefi"`},
		"malformed UUID":              {spec: "{vm: {maximumCpus: 1, machineUuid: '1234'}}", field: "spec.vm.machineUuid", says: "should match"},
		"option in the machine type":  {spec: "{vm: {maximumCpus: 1, machineType: 'pc,accel=tcg'}}", field: "spec.vm.machineType", says: "should match"},
		"negative time":               {spec: "{vm: {maximumCpus: 1, powerdownTimeout: -1}}", field: "spec.vm.powerdownTimeout", says: "greater than or equal to 0"},
		"kernel without a file":       {spec: "{vm: {maximumCpus: 1, kernelBoot: {args: quiet}}}", field: "spec.vm.kernelBoot.kernel", says: "Required value"},
		"too many screens":            {spec: "{vm: {maximumCpus: 1, display: {outputs: 17}}}", field: "spec.vm.display.outputs", says: "less than or equal to 16"},
		"VNC below QEMU's ports":      {spec: "{vm: {maximumCpus: 1, display: {vnc: {port: 5899}}}}", field: "spec.vm.display.vnc.port", says: "greater than or equal to 5900"},
		"VNC above all ports":         {spec: "{vm: {maximumCpus: 1, display: {vnc: {port: 65536}}}}", field: "spec.vm.display.vnc.port", says: "less than or equal to 65535"},
		"no port for WebSockets":      {spec: "{vm: {maximumCpus: 1, display: {vnc: {websocket: 0}}}}", field: "spec.vm.display.vnc.websocket", says: "greater than or equal to 1"},
		"VNC twice on a port":         {spec: "{vm: {maximumCpus: 1, display: {vnc: {port: 5950, websocket: 5950}}}}", field: "spec.vm.display.vnc", says: "port and websocket must not be the same"},
		"WebSockets on VNC's default": {spec: "{vm: {maximumCpus: 1, display: {vnc: {websocket: 5901}}}}", field: "spec.vm.display.vnc", says: "port and websocket must not be the same"},
		"VNC on socket and port":      {spec: "{vm: {maximumCpus: 1, display: {vnc: {unixSocket: true, port: 5901}}}}", field: "spec.vm.display.vnc", says: "a server on a UNIX socket has neither port nor websocket"},
		"WebSockets beside a socket":  {spec: "{vm: {maximumCpus: 1, display: {vnc: {unixSocket: true, websocket: 5700}}}}", field: "spec.vm.display.vnc", says: "a server on a UNIX socket has neither port nor websocket"},
		"a path as a switch":          {spec: "{vm: {maximumCpus: 1, display: {vnc: {unixSocket: /run/vnc.sock}}}}", field: "spec.vm.display.vnc.unixSocket", says: "must be of type boolean"},
		"VNC on SPICE's port":         {spec: "{vm: {maximumCpus: 1, display: {spice: {port: 5901}, vnc: {}}}}", field: "spec.vm.display", says: "spice.port and vnc.port must not be the same"},
		"WebSockets on SPICE's port":  {spec: "{vm: {maximumCpus: 1, display: {spice: {}, vnc: {websocket: 5900}}}}", field: "spec.vm.display", says: "spice.port and vnc.websocket must not be the same"},
		"text for a number":           {spec: "{vm: {maximumCpus: two}}", field: "spec.vm.maximumCpus", says: `must be of type integer`},
		"no machine":                  {spec: "{}", field: "spec.vm", says: "Required value"},
		"image of only a pull policy": {spec: "{image: {pullPolicy: Always}, vm: " + vm + "}", field: "spec.image", says: "give either source, or repository and path"},
		"FreeMarker template":         {spec: "{runnerTemplate: {source: My-VM.FTL.yaml}, vm: " + vm + "}", field: "spec.runnerTemplate.source", says: "FreeMarker templates are not executed; write a Go text/template"},
		"FreeMarker by its end":       {spec: "{runnerTemplate: {source: my/Standard-VM-1.ftl}, vm: " + vm + "}", field: "spec.runnerTemplate.source", says: "FreeMarker templates are not executed"},
		"image given twice":           {spec: "{image: {source: a, repository: b, path: c}, vm: " + vm + "}", field: "spec.image", says: "give either source, or repository and path"},
		"unknown pull policy":         {spec: "{image: {source: a, pullPolicy: Sometimes}, vm: " + vm + "}", field: "spec.image.pullPolicy", says: `"IfNotPresent"`},
		"user data twice":             {spec: "{cloudInit: {userData: {}, userDataFrom: {secretRef: {name: a}}}, vm: " + vm + "}", field: "spec.cloudInit", says: "give either userData or userDataFrom"},
		"meta-data twice":             {spec: "{cloudInit: {metaData: {}, metaDataFrom: {secretRef: {name: a}}}, vm: " + vm + "}", field: "spec.cloudInit", says: "give either metaData or metaDataFrom"},
		"network twice":               {spec: "{cloudInit: {networkConfig: {}, networkConfigFrom: {secretRef: {name: a}}}, vm: " + vm + "}", field: "spec.cloudInit", says: "give either networkConfig or networkConfigFrom"},
		"user data of no secret":      {spec: "{cloudInit: {userDataFrom: {secretRef: {name: ''}}}, vm: " + vm + "}", field: "spec.cloudInit.userDataFrom.secretRef.name", says: "at least 1 char"},
		"two ways to provision":       {spec: "{cloudInit: {}, provisioning: {type: UserData, userData: a}, vm: " + vm + "}", field: "spec", says: "give either cloudInit or provisioning"},
		"unknown provisioning":        {spec: "{provisioning: {type: Ignition}, vm: " + vm + "}", field: "spec.provisioning.type", says: `"SysprepRef"`},
		"provisioning without data":   {spec: "{provisioning: {type: UserData}, vm: " + vm + "}", field: "spec.provisioning", says: "userData goes with the type UserData"},
		"provisioning of two":         {spec: "{provisioning: {type: UserDataRef, userDataRef: {name: a}, sysprepRef: {name: a}}, vm: " + vm + "}", field: "spec.provisioning", says: "sysprepRef goes with the type SysprepRef"},
		"user data of another type":   {spec: "{provisioning: {type: SysprepRef, userData: a, sysprepRef: {name: a}}, vm: " + vm + "}", field: "spec.provisioning", says: "userData goes with the type UserData"},
		"user data of 2049 bytes":     {spec: "{provisioning: {type: UserData, userData: '" + strings.Repeat("é", 1024) + "a'}, vm: " + vm + "}", field: "spec.provisioning.userData", says: "may not have more than 2048 bytes"},
		"provisioned by a ConfigMap":  {spec: "{provisioning: {type: SysprepRef, sysprepRef: {kind: ConfigMap, name: a}}, vm: " + vm + "}", field: "spec.provisioning.sysprepRef.kind", says: `"Secret"`},
		"path as a key of a secret":   {spec: "{cloudInit: {userDataFrom: {secretRef: {name: a, key: ../b}}}, vm: " + vm + "}", field: "spec.cloudInit.userDataFrom.secretRef.key", says: "should match"},
		"permission of two":           {spec: "{permissions: [{user: a, role: b, may: [start]}], vm: " + vm + "}", field: "spec.permissions[0]", says: "give exactly one of user and role"},
		"permission of nobody":        {spec: "{permissions: [{may: [start]}], vm: " + vm + "}", field: "spec.permissions[0]", says: "give exactly one of user and role"},
		"unknown permission":          {spec: "{permissions: [{user: a, may: [fly]}], vm: " + vm + "}", field: "spec.permissions[0].may[0]", says: `"takeConsole"`},
		"name with a dot":             {name: "a.b", spec: "{vm: " + vm + "}", says: "metadata.name must be a DNS label"},
		"name with a digit first":     {name: "9lives", spec: "{vm: " + vm + "}", says: "metadata.name must be a DNS label"},
		"name too long":               {name: strings.Repeat("a", 64), spec: "{vm: " + vm + "}", says: "metadata.name must be a DNS label of at most 63 characters"},
	} {
		t.Run(what, func(t *testing.T) {
			name := c.name
			if name == "" {
				name = "mistaken"
			}
			refuse(t, spec.KindVirtualMachine, name, c.spec, c.field, c.says)
		})
	}
}

func TestOneMistakeInADiskIsRefused(t *testing.T) {
	const claim = "persistentVolumeClaim: {size: 1Gi}, "
	for what, c := range map[string]struct{ spec, field, says string }{
		"copy of an image":    {spec: "{" + claim + "dataSource: {type: ObjectRef, objectRef: {kind: VirtualDiskSnapshot, name: a}}}", field: "spec.dataSource.objectRef", says: "the kind must be"},
		"copy of what":        {spec: "{" + claim + "dataSource: {type: ObjectRef, containerImage: {image: a}}}", field: "spec.dataSource", says: "is for type"},
		"copy without a name": {spec: "{" + claim + "dataSource: {type: ObjectRef, objectRef: {kind: VirtualDisk}}}", field: "spec.dataSource.objectRef.name", says: "Required value"},
		"long name of a disk": {spec: "{" + claim + "dataSource: {type: ObjectRef, objectRef: {kind: VirtualDisk, name: " + strings.Repeat("a", 61) + "}}}", field: "spec.dataSource.objectRef", says: "60"},
		"format of a disk":    {spec: "{" + claim + "dataSource: {type: ObjectRef, objectRef: {kind: VirtualDisk, name: a, format: raw}}}", field: "spec.dataSource.objectRef", says: "for kind VolumeSnapshot"},
		"format of nobody":    {spec: "{" + claim + "dataSource: {type: ObjectRef, objectRef: {kind: VolumeSnapshot, name: a, format: vmdk}}}", field: "spec.dataSource.objectRef.format", says: `"qcow2"`},
		"block of qcow2":      {spec: "{persistentVolumeClaim: {size: 1Gi, volumeMode: Block}, dataSource: {type: ObjectRef, objectRef: {kind: VolumeSnapshot, name: a, format: qcow2}}}", field: "spec", says: "a block device is raw"},
		"upload of a server":  {spec: "{" + claim + "dataSource: {type: HTTP, http: {url: 'http://a.test/a'}, upload: {}}}", field: "spec.dataSource", says: "upload is for type Upload"},
		"checksum of two":     {spec: "{" + claim + "dataSource: {type: Upload, upload: {checksum: {}}}}", field: "spec.dataSource.upload.checksum", says: "give one of sha256 and sha512"},
		"block of an upload":  {spec: "{persistentVolumeClaim: {size: 1Gi, volumeMode: Block}, dataSource: {type: Upload}}", field: "spec", says: "what is uploaded is a file"},
		"secret of no name":   {spec: "{" + claim + "dataSource: {type: ContainerImage, containerImage: {image: a, imagePullSecret: {}}}}", field: "spec.dataSource.containerImage.imagePullSecret.name", says: "Required value"},
	} {
		t.Run(what, func(t *testing.T) {
			refuse(t, spec.KindDisk, "mistaken", c.spec, c.field, c.says)
		})
	}
}

func TestOneMistakeInAnImageIsRefused(t *testing.T) {
	const claim, source = "persistentVolumeClaim: {size: 1Gi}, ", "dataSource: {type: HTTP, http: {url: 'http://images.test/a'}}"
	for what, c := range map[string]struct{ name, spec, field, says string }{
		"no source":        {spec: "{persistentVolumeClaim: {size: 1Gi}}", field: "spec.dataSource", says: "Required value"},
		"no size":          {spec: "{persistentVolumeClaim: {}, " + source + "}", field: "spec.persistentVolumeClaim.size", says: "Required value"},
		"a size of none":   {spec: "{persistentVolumeClaim: {size: 0}, " + source + "}", field: "spec.persistentVolumeClaim.size", says: ""},
		"writable for one": {spec: "{persistentVolumeClaim: {size: 1Gi, accessMode: ReadOnlyMany}, " + source + "}", field: "spec.persistentVolumeClaim.accessMode", says: `supported values: "ReadWrite`},
		"of what":          {spec: "{" + claim + "dataSource: {type: HTTP}}", field: "spec.dataSource", says: ""},
		"of which kind":    {spec: "{" + claim + "dataSource: {type: ObjectRef, objectRef: {kind: VirtualDiskSnapshot, name: a}}}", field: "spec.dataSource.objectRef", says: "the kind must be"},
		"of a snapshot":    {spec: "{" + claim + "dataSource: {type: ObjectRef, objectRef: {kind: VolumeSnapshot, name: a}}}", field: "spec", says: "no image is made of a VolumeSnapshot"},
		"of no name":       {spec: "{" + claim + "dataSource: {type: ObjectRef, objectRef: {kind: VirtualImage}}}", field: "spec.dataSource.objectRef.name", says: "Required value"},
		"a long name":      {name: strings.Repeat("a", 61), spec: "{" + claim + source + "}", says: "60"},
	} {
		t.Run(what, func(t *testing.T) {
			refuse(t, spec.KindImage, cmp.Or(c.name, "mistaken"), c.spec, c.field, c.says)
		})
	}
}

func TestOneMistakeInAPoolIsRefused(t *testing.T) {
	for what, c := range map[string]struct{ spec, field, says string }{
		"no permissions":       {spec: "{}", field: "spec.permissions", says: "Required value"},
		"permission of two":    {spec: "{permissions: [{user: a, role: b}]}", field: "spec.permissions[0]", says: "give exactly one of user and role"},
		"permission of nobody": {spec: "{permissions: [{}]}", field: "spec.permissions[0]", says: "give exactly one of user and role"},
		"unknown permission":   {spec: "{permissions: [{user: a, may: [takeConsole]}]}", field: "spec.permissions[0].may[0]", says: `"accessConsole"`},
		"retention in words":   {spec: "{permissions: [], retention: an hour}", field: "spec.retention", says: "should match"},
		"retention of nothing": {spec: "{permissions: [], retention: P}", field: "spec.retention", says: "a duration needs a number behind its last letter"},
		"retention cut short":  {spec: "{permissions: [], retention: P1DT}", field: "spec.retention", says: "a duration needs a number behind its last letter"},
	} {
		t.Run(what, func(t *testing.T) {
			refuse(t, spec.KindVMPool, "mistaken", c.spec, c.field, c.says)
		})
	}
}

// refuse expects the refusal of an object, by the API server and by the library.
func refuse(t *testing.T, kind, name, specYAML, field, says string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(spec.GroupVersion().String())
	object.SetKind(kind)
	object.SetName(name)
	object.SetNamespace("default")
	var content map[string]any
	if err := yaml.Unmarshal([]byte(specYAML), &content); err != nil {
		t.Fatal(err)
	}
	object.Object["spec"] = content

	data, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spec.Load("mistaken.json", data, spec.Options{Validate: true}); err == nil {
		t.Error("spec.Load finds nothing wrong")
	}

	_, err = newClient(t).Resource(resources[kind]).Namespace("default").Create(t.Context(), object, strict)
	if !apierrors.IsInvalid(err) {
		t.Fatalf("the API server says %v", err)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatal(err)
	}
	for _, cause := range status.Status().Details.Causes {
		if strings.Contains(cause.Message, says) && (field == "" || cause.Field == field) {
			return
		}
	}
	t.Errorf("no cause names %q and says %q: %v", field, says, err)
}

func TestUnknownFieldsAreRefusedWhenAsked(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": spec.GroupVersion().String(), "kind": spec.KindVirtualMachine,
		"metadata": map[string]any{"name": "mistyped", "namespace": "default"},
		"spec": map[string]any{
			"vm":        map[string]any{"maximumCpus": int64(1), "maximumCPUs": int64(1)},
			"cloudInit": map[string]any{"userData": map[string]any{"anything": "goes"}},
		},
	}}
	_, err := newClient(t).Resource(machines).Namespace("default").Create(t.Context(), object, strict)
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "spec.vm.maximumCPUs"`) || strings.Contains(err.Error(), "anything") {
		t.Errorf("got %v", err)
	}
}
