package changes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
)

// No change of where a disk came from overwrites one that is there.
func TestChangesOfImages(t *testing.T) {
	const image, kept, fresh = "image: {name: a, source: https://example.org/a.img, size: 2Gi}",
		"containerDisk: {name: a, image: quay.io/a/b, persistent: true, size: 2Gi}", "containerDisk: {name: a, image: quay.io/a/b}"
	for _, c := range []struct{ from, to, want string }{
		{image, strings.Replace(image, "a.img", "b.img", 1), "spec.vm.disks[0].image.source " + string(AppliedNever) + " " + diskKept},
		{image, strings.Replace(image, "2Gi", "3Gi", 1), "spec.vm.disks[0].image.size " + string(AppliedRestart)},
		{image, strings.Replace(image, "2Gi", "1Gi", 1), "spec.vm.disks[0].image.size " + string(AppliedNever) + " a volume cannot shrink"},
		{image, strings.Replace(image, "name: a", "name: b", 1), "spec.vm.disks[0] " + string(AppliedRestart) + " the disk a-disk becomes b-disk"},
		{image, kept, "spec.vm.disks[0] " + string(AppliedRestart)},
		{kept, strings.Replace(kept, "a/b", "a/c", 1), "spec.vm.disks[0].containerDisk.image " + string(AppliedNever) + " " + diskKept},
		{kept, strings.Replace(kept, "2Gi", "1Gi", 1), "spec.vm.disks[0].containerDisk.size " + string(AppliedNever)},
		{fresh, strings.Replace(fresh, "a/b", "a/c", 1), "spec.vm.disks[0].containerDisk.image " + string(AppliedRestart)},
		{fresh, strings.Replace(fresh, "}", ", size: 1Gi}", 1), "spec.vm.disks[0].containerDisk.size " + string(AppliedRestart)},
	} {
		got := Between(withDisk(t, c.from), withDisk(t, c.to), Options{})
		if len(got) != 1 || !strings.HasPrefix(fmt.Sprint(got[0].Path, " ", got[0].Applied, " ", got[0].Reason), c.want) {
			t.Errorf("%s -> %s: %+v, want %s", c.from, c.to, got, c.want)
		}
	}
}

func withDisk(t *testing.T, disk string) *spec.VirtualMachine {
	t.Helper()
	text := "apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: m}\nspec:\n  vm:\n    maximumCpus: 1\n    disks:\n    - " + disk + "\n"
	objects, err := spec.Load("m", []byte(text), spec.Options{Default: true, Validate: true})
	if err != nil {
		t.Fatal(err)
	}
	return objects[0].VirtualMachine
}
