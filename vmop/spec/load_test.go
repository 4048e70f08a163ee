package spec_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/vmop/spec"
)

// Manifests that VM-Operator takes apply unchanged.
func TestManifestsOfVMOperatorAreValid(t *testing.T) {
	for file, want := range map[string][]string{
		"seed-controller.yaml":       {"VirtualMachine vmop-demo/test-vm:2"},
		"seed-controller-older.yaml": {"VirtualMachine vmop-demo/test-vm:2"},
		"local-path.yaml":            {"VirtualMachine vmop-demo/test-vm:3"},
		"dev-example.yaml": {
			"VirtualMachine vmop-dev/test-vm:3", "VmPool vmop-dev/test-vms:55", "Secret vmop-dev/test-vm-display-secret:69",
		},
		"basic-vm.yaml":  {"VirtualMachine vmop-test/test-vm:2"},
		"additions.yaml": {"VirtualMachine /direct:2"},
	} {
		t.Run(file, func(t *testing.T) {
			objects, err := spec.Load(file, read(t, "testdata/"+file), spec.Options{Default: true, Validate: true})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, o.Kind+" "+o.Namespace+"/"+o.Name+strings.TrimPrefix(o.Position(""), file))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblemsOfBadManifests(t *testing.T) {
	files, err := filepath.Glob("testdata/problems/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			objects, err := spec.Load(filepath.Base(file), read(t, file), spec.Options{Validate: true})
			var load *spec.LoadError
			if !errors.As(err, &load) {
				t.Fatalf("got error %v, want a *LoadError", err)
			}
			var b strings.Builder
			b.WriteString(err.Error() + "\n")
			for _, o := range objects {
				b.WriteString("loaded: " + o.Kind + " " + o.Name + "\n")
			}
			spec.Golden(t, file+".golden", []byte(b.String()))
		})
	}
}

func TestObjectsAreReturnedAsWritten(t *testing.T) {
	objects, err := spec.Load("additions.yaml", read(t, "testdata/additions.yaml"), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := objects[0]
	vm := o.VirtualMachine
	if vm.Spec.VM.Firmware != "" || vm.Spec.VM.MaximumRAM != nil {
		t.Error("defaults were set without being asked for")
	}
	// Order of keys, form of numbers and keys with slashes are what the
	// guest's cloud-init gets to see.
	const want = `{"zzz_first":1.50,"disk_setup":{"/dev/vdb":{"table_type":"gpt","layout":true}},"password":"yes","runcmd":[["sh","-c","echo <&>"]]}`
	if got := string(vm.Spec.CloudInit.UserData.Raw); got != want {
		t.Errorf("user data\n got %s\nwant %s", got, want)
	}
	if got := vm.Spec.VM.Networks[1].User; got.MAC != "52:54:00:00:00:02" || len(got.HostForwards) != 0 {
		t.Errorf("merge key: got %+v", got)
	}
	for path, line := range map[string]string{
		"":                                                    "2",
		"metadata.name":                                       "5",
		"spec.cloudInit.userData.password":                    "12",
		"spec.vm.networks[0].user.mac":                        "29",
		"spec.vm.networks[0].user.hostForwards":               "30",
		"spec.vm.networks[1].user.mac":                        "35",
		"spec.vm.networks[1].user.device":                     "33",
		"spec.vm.disks[1].volumeClaimTemplate":                "39",
		"spec.vm.disks[7].cdrom":                              "37",
		"spec.vm.firmware":                                    "16",
		"spec.cloudInit.userData.disk_setup[/dev/vdb].layout": "11",
	} {
		if got, want := o.Position(path), "additions.yaml:"+line; got != want {
			t.Errorf("position of %q: got %s, want %s", path, got, want)
		}
	}
	if o.Written("spec.vm.firmware") || !o.Written("spec.vm.cpuModel") {
		t.Error("Written mistakes defaults for what was written")
	}
}

func TestLenientTurnsUnknownFieldsIntoWarnings(t *testing.T) {
	data := read(t, "testdata/problems/unknown-fields.yaml")
	objects, err := spec.Load("vm.yaml", data, spec.Options{Lenient: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range objects[0].Warnings {
		got = append(got, w.Path)
	}
	want := []string{
		"metadata.lables", "spec.vm.maximumCPUs", "spec.vm.memory", "spec.vm.disks[0].cdrom.imgae",
		"spec.vm.disks[1].volumeClaimTemplate.metadata.anotations", "spec.vm.disks[1].volumeClaimTemplate.spec.storageClass",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestOtherKindsComeBackUntouched(t *testing.T) {
	const secret = "---\n# comment\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\nstringData: {a: \"b\", unknown-to-us: 'x'}\n"
	data := "%YAML 1.1\n" + secret + "...\n" + "---\n---\n# nothing\n" +
		`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "z": 1, "a": 2}]}`
	objects, err := spec.Load("all.yaml", []byte(data), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.APIVersion+" "+o.Kind+" "+o.Namespace+"/"+o.Name, string(o.Raw))
	}
	want := []string{
		"v1 Secret ns/s", "%YAML 1.1\n" + secret + "...\n",
		"kubevirt.io/v1 VirtualMachine /", `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","z":1,"a":2}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEmptyFilesHaveNoObjects(t *testing.T) {
	for _, data := range []string{"", "\n", "---\n", "# only a comment\n", "---\n---\n...\n", "\ufeff---\n", "null\n", " \r\n---\r\n"} {
		objects, err := spec.Load("x.yaml", []byte(data), spec.Options{})
		if err != nil || len(objects) != 0 {
			t.Errorf("%q: got %v, %v", data, objects, err)
		}
	}
}

// An alias bomb must cost neither memory nor time.
func TestMergeBombIsRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 {")
	for i := range 2000 {
		b.WriteString(strings.Repeat("k", 1+i%50) + string(rune('a'+i%26)) + strings.Repeat("x", i/50) + ": 1, ")
	}
	b.WriteString("}\n")
	for i := range 500 {
		b.WriteString("b" + strings.Repeat("y", i) + ": {<<: *a0}\n")
	}
	_, err := spec.Load("bomb.yaml", []byte(b.String()), spec.Options{})
	if err == nil || !strings.Contains(err.Error(), "bring in more than") {
		t.Errorf("got %v", err)
	}
}

func TestProblemIsOneLine(t *testing.T) {
	p := spec.Problem{File: "a.yaml", Line: 3, Kind: "VirtualMachine", Namespace: "n", Name: "x\n\x1b[2J", Path: "spec.vm", Message: "is\twrong"}
	if got, want := p.String(), `a.yaml:3: VirtualMachine n/x\n\u001b[2J: spec.vm: is\twrong`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clip(data)
}
