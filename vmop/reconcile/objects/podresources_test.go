package objects_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// Administrators size quotas by what docs/install.md says that the pods beside those of
// machines ask for.
func TestDocumentedResourcesOfPods(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	d := &spec.VirtualDisk{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "lab"}}
	d.Spec.PersistentVolumeClaim.Size = resource.MustParse("1Gi")
	disk := objects.FilledDisk(d)
	i := &spec.ClusterVirtualImage{ObjectMeta: metav1.ObjectMeta{Name: "debian"}}
	a := &spec.VirtualMachineBlockDeviceAttachment{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "lab"}}
	a.Status.Connection = &spec.AttachmentConnection{}
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "lab"}}
	spec.Default(vm)

	for row, pod := range map[string]*corev1.Pod{
		"makes a VirtualDisk or an image of its source, a copy, a clone, a snapshot or an upload": disk.ImportJob(objects.Settings{}, nil),
		"exports a disk to a machine that runs (VirtualMachineBlockDeviceAttachment)":             objects.ExportJob(a, vm, "node-1", corev1.PersistentVolumeFilesystem, objects.Settings{}),
		"lets a disk or an image be downloaded":                                                   disk.DownloadJob(objects.Settings{}, "raw"),
		"serves an image of the cluster to a disk or an image":                                    objects.ServerJob(i, objects.Copier{}, objects.Settings{}),
	} {
		if n := len(pod.Spec.Containers) + len(pod.Spec.InitContainers); n != 1 {
			t.Errorf("%s: the pod has %d containers", row, n)
		}
		r := pod.Spec.Containers[0].Resources
		want := fmt.Sprintf("\n| %s | %s CPU, %s | %s CPU, %s |\n", row, r.Requests.Cpu(), r.Requests.Memory(), r.Limits.Cpu(), r.Limits.Memory())
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/install.md has no row%s", want)
		}
	}
}
