package spec_test

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
)

// Messages reach logs, events and conditions, which more people read than manifests.
func TestPasswordsInURLsAreNotShown(t *testing.T) {
	for name, manifest := range map[string]string{
		"a disk of a server":      `{kind: VirtualDisk, metadata: {name: a}, spec: {dataSource: {type: HTTP, http: {url: "https://u:s3cret@a.test/a"}}, persistentVolumeClaim: {size: 1Gi}}}`,
		"a scheme":                `{kind: VirtualImage, metadata: {name: a}, spec: {dataSource: {type: HTTP, http: {url: "ftp://u:s3cret@a.test/a"}}, persistentVolumeClaim: {size: 1Gi}}}`,
		"a container image":       `{kind: VirtualDisk, metadata: {name: a}, spec: {dataSource: {type: ContainerImage, containerImage: {image: "https://u:s3cret@a.test/a"}}, persistentVolumeClaim: {size: 1Gi}}}`,
		"an image of a machine":   `{kind: VirtualMachine, metadata: {name: a}, spec: {vm: {maximumRam: 1Gi, disks: [{image: {name: a, source: "https://u:s3cret@a.test/a", size: 1Gi}}]}}}`,
		"a disk in an image":      `{kind: VirtualMachine, metadata: {name: a}, spec: {vm: {maximumRam: 1Gi, disks: [{containerDisk: {name: a, image: "https://u:s3cret@a.test/a"}}]}}}`,
		"a CD":                    `{kind: VirtualMachine, metadata: {name: a}, spec: {vm: {maximumRam: 1Gi, disks: [{cdrom: {image: "https://u:s3cret@a.test/a.iso"}}]}}}`,
		"a CD of another scheme":  `{kind: VirtualMachine, metadata: {name: a}, spec: {vm: {maximumRam: 1Gi, disks: [{cdrom: {image: "nbd://u:s3cret@a.test/a.iso"}}]}}}`,
		"a CD of a file's server": `{kind: VirtualMachine, metadata: {name: a}, spec: {vm: {maximumRam: 1Gi, disks: [{cdrom: {image: "file://u:s3cret@a.test/a.iso"}}]}}}`,
		"a proxy":                 `{kind: VirtualMachine, metadata: {name: a}, spec: {vm: {maximumRam: 1Gi, display: {spice: {port: 5900, proxyUrl: "http://u:s3cret@a b.test"}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := spec.Load("a.yaml", []byte("{apiVersion: vmoperator.jdrupes.org/v1, "+manifest[1:]), spec.Options{Validate: true})
			if err == nil || !strings.Contains(err.Error(), `Invalid value: "(not shown)"`) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A URL of another scheme is told beside a field that there is not: something is there,
// and it is wrong.
func TestURLOfAnotherSchemeIsWrongAndNotMissing(t *testing.T) {
	_, err := spec.Load("a.yaml", []byte(`
apiVersion: vmoperator.jdrupes.org/v1
kind: VirtualDisk
metadata: {name: a}
spec:
  dataSource: {type: HTTP, http: {url: "ftp://a.test/a", sum: abc}}
  persistentVolumeClaim: {size: 1Gi}
`), spec.Options{Validate: true})
	for _, want := range []string{`spec.dataSource.http.url: Invalid value: "ftp://a.test/a": must be a URL of http or https`, "spec.dataSource.http.sum: there is no such field"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nothing says %q: %v", want, err)
		}
	}
}
