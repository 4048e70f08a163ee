package reconcile_test

import (
	"fmt"
	"log"
	"time"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

func webServer() *spec.VirtualMachine {
	objects, err := spec.Load("web.yaml", []byte(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: web, namespace: prod}
spec:
  vm:
    maximumCpus: 2
    disks:
    - cdrom: {image: debian.iso}
    - volumeClaimTemplate:
        metadata: {name: system}
        spec: {resources: {requests: {storage: 10Gi}}}
`), spec.Options{Default: true, Validate: true})
	if err != nil {
		log.Fatal(err)
	}
	return objects[0].VirtualMachine
}

func ExampleDisks() {
	for _, d := range reconcile.Disks(webServer()) {
		fmt.Printf("%s: name %q, claim %q\n", d.Field(), d.Name, d.Claim)
	}
	// Output:
	// spec.vm.disks[0]: name "", claim ""
	// spec.vm.disks[1]: name "system-disk", claim "web-system-disk"
}

func ExampleRunnerConfig() {
	config, err := reconcile.RunnerConfig(webServer(), reconcile.RunnerConfigOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range config.Runner.VM.Drives {
		fmt.Println(d.Type, d.File+d.Resource)
	}
	// Output:
	// ide-cd /var/local/vmop-image-repository/debian.iso
	// raw /dev/system-disk
}

func ExampleLocalRunnerConfig() {
	config, err := reconcile.LocalRunnerConfig(webServer(), reconcile.Local{
		DataDir:         "/srv/web",
		RuntimeDir:      "/run/web",
		ImageRepository: "/srv/images",
		Disks:           map[string]string{"system": "/srv/images/web.qcow2"},
	})
	if err != nil {
		log.Fatal(err)
	}
	file, err := runnerconfig.Marshal(config) // for the runner's --config
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(file) > 0, config.Runner.VM.Display.SPICE.Socket)
	// Output: true /run/web/spice.sock
}

func ExampleChanges() {
	old, new := webServer(), webServer()
	new.Spec.VM.Disks[0].Cdrom.Image = ""
	new.Spec.VM.Firmware = spec.FirmwareBIOS
	for _, c := range reconcile.Changes(old, new, reconcile.ChangeOptions{}) {
		fmt.Println(c)
	}
	// Output:
	// replace spec.vm.firmware: "uefi" -> "bios" (restart)
	// replace spec.vm.disks[0].cdrom.image: "debian.iso" -> "" (live)
}

func ExampleObjects() {
	objects, err := reconcile.Objects(webServer(), reconcile.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range objects {
		fmt.Println(o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
	}
	// Output:
	// Secret web-display-secret
	// ConfigMap web
	// PersistentVolumeClaim web-runner-data
	// PersistentVolumeClaim web-system-disk
	// Pod web
}

// A machine that was just created needs its objects first.
func ExampleDecide() {
	objects, err := spec.Load("hello.yaml", []byte(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualMachine
metadata: {name: hello, namespace: demo}
spec:
  vm:
    state: Running
    maximumCpus: 2
`), spec.Options{Validate: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := reconcile.Decide(reconcile.Snapshot{
		VM:       objects[0].VirtualMachine,
		Now:      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Password: "from a random source",
	})
	for _, a := range plan.Actions {
		fmt.Println(a.Target())
	}
	// Output:
	// create Secret hello-display-secret
	// create ConfigMap hello
	// create PersistentVolumeClaim hello-runner-data
}
