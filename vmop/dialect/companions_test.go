package dialect_test

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/dialect"
)

// What a disk of its own says that has no counterpart is told, as what a machine says is,
// with its own file and line, and with each machine that has the disk.
func TestWhatDisksSayIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"KubeVirt": {`
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata: {name: root, labels: {app: a}}
spec:
  preallocation: true
  priorityClassName: high
  source:
    http: {url: "https://images.example/a.qcow2", extraHeaders: ["a: b"], checksum: "md5:0"}
  storage: {resources: {requests: {storage: 1Gi}}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: a}
spec:
  runStrategy: Always
  template:
    spec:
      domain: {memory: {guest: 1Gi}, devices: {disks: [{name: root, disk: {}}], interfaces: [{name: default, masquerade: {}}]}}
      networks: [{name: default, pod: {}}]
      volumes: [{name: root, dataVolume: {name: root}}]
`, []string{"in.yaml:6: DataVolume root: spec.preallocation", "in.yaml:7: DataVolume root: spec.priorityClassName", "spec.source.http.extraHeaders", "spec.source.http.checksum"}},
		"Deckhouse": {`
apiVersion: virtualization.deckhouse.io/v1alpha2
kind: VirtualDisk
metadata: {name: root}
spec:
  unheardOf: 1
  persistentVolumeClaim: {size: 1Gi}
  dataSource: {type: HTTP, http: {url: "https://images.example/a.qcow2", headers: {a: b}}}
---
apiVersion: virtualization.deckhouse.io/v1alpha2
kind: VirtualMachine
metadata: {name: a}
spec:
  cpu: {cores: 1}
  memory: {size: 1Gi}
  blockDeviceRefs: [{kind: VirtualDisk, name: root}]
`, []string{"in.yaml:6: VirtualDisk root: spec.unheardOf", "in.yaml:8: VirtualDisk root: spec.dataSource.http.headers"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := dialect.Translate(load(t, []byte(c.text)))
			if err != nil || len(got.Machines) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			var notes []string
			for _, made := range got.All() {
				for _, n := range made.Notes {
					notes = append(notes, n.String())
				}
			}
			for _, want := range c.want {
				if n := strings.Count(strings.Join(notes, "\n"), want); n != 1 {
					t.Errorf("%q is told %d times in %q", want, n, notes)
				}
			}
		})
	}
}
