package objects_test

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// Linux starts no program with a variable of more than 128 KiB, with its name and the NUL
// at its end: MAX_ARG_STRLEN of its execve.
const longestVariable = 128 << 10

// Whatever is valid of a disk's source fits into the variable by which its pod is told.
func TestTheLargestSourceFitsIntoAVariable(t *testing.T) {
	const certificate = "-----BEGIN CERTIFICATE-----\n"
	for _, filler := range []string{"#", "\n", "\"", "&", "$", "\x01", "ü", "\u2028"} {
		filled := func(n int) string { return certificate + strings.Repeat(filler, n) }
		bundle := filled(sort.Search(limits.MaxCABundle, func(n int) bool { return limits.CABundle(filled(n)) != nil }) - 1)
		for name, s := range map[string]spec.VirtualDiskSource{
			"a server": {Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{
				URL: "https://a.test/" + strings.Repeat("&", 4096-len("https://a.test/")), CABundle: bundle,
				Checksum: &spec.VirtualDiskChecksum{SHA512: strings.Repeat("0f", 64)},
			}},
			"a container image": {Type: spec.DiskSourceContainerImage, ContainerImage: &spec.VirtualDiskContainerImage{
				Image: "a.test/" + strings.Repeat("a", 200), Path: "/" + strings.Repeat("&", 1023), CABundle: bundle,
			}},
		} {
			d := &spec.VirtualDisk{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}}
			d.Spec.DataSource = &s
			d.Spec.PersistentVolumeClaim.Size = resource.MustParse("1Gi")
			d.Spec.PersistentVolumeClaim.VolumeMode = new(corev1.PersistentVolumeBlock)
			if errs := spec.ValidateDisk(d); len(errs) > 0 {
				t.Fatalf("%s: %v", name, errs.ToAggregate())
			}
			for _, v := range objects.FilledDisk(d).ImportJob(objects.Settings{}, nil).Spec.Containers[0].Env {
				if n := len(fmt.Sprintf("%s=%s\x00", v.Name, v.Value)); n > longestVariable {
					t.Errorf("%s with a bundle of %q: %s has %d bytes, of at most %d", name, filler, v.Name, n, longestVariable)
				}
			}
		}
	}
}
