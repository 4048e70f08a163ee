package vmop_test

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
)

// Every single mistake that only QEMU's builder knew once.
func TestMistakesAreFoundInTheManifest(t *testing.T) {
	for path, in := range map[string]string{
		"spec.vm.networks[0].user.net":    "networks: [{user: {net: 10.0.2.0/30}}]",
		"spec.vm.networks[0].user.device": "networks: [{user: {device: usb-net}}]",
		"spec.vm.networks[0].tap.device":  "networks: [{tap: {device: E1000}}]",
		"spec.vm.cpuModel":                "cpuModel: 'host,x=a;b'",
		"spec.vm.disks[0].cdrom.image":    "disks: [{cdrom: {image: 'https://me:secret@host/x.iso'}}]",
		"spec.cloudInit.userData":         "}, cloudInit: {userData: {a: " + strings.Repeat("[", 120) + strings.Repeat("]", 120) + "}",
	} {
		in = "apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: a}\nspec:\n  {vm: {maximumCpus: 1, " + in + "}}\n"
		_, err := spec.Load("f.yaml", []byte(in), spec.Options{Validate: true})
		if err == nil || !strings.Contains(err.Error(), "f.yaml:5: VirtualMachine a: "+path+": ") {
			t.Errorf("%s: %v", path, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the password is shown", path)
		}
	}
}
