package host

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
)

// Whatever a machine has had and is given: no empty disk is made under the name or
// at the path of one that it has had, nor beside one that exists and would be left
// out. A start that uses what was used before is never refused.
func TestNoEmptyDiskInPlaceOfAKnownOne(t *testing.T) {
	names := []string{"system", "data", "root"}
	rapid.Check(t, func(t *rapid.T) {
		paths := func(name string) []string { return []string{"/m/" + name + ".img", "/srv/a.qcow2", "/srv/b.qcow2"} }
		there := map[string]bool{}
		for _, p := range append(paths("system"), "/m/data.img", "/m/root.img") {
			there[p] = rapid.Bool().Draw(t, "there "+p)
		}
		draw := func(label string) map[string]string {
			out := map[string]string{}
			for _, n := range names {
				if rapid.Bool().Draw(t, label+n) {
					out[n] = rapid.SampledFrom(paths(n)).Draw(t, label+"path of "+n)
				}
			}
			return out
		}
		used, wanted := draw("used "), draw("wanted ")
		fresh := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "fresh")
		var disks []startDisk
		for _, n := range slices.Sorted(maps.Keys(wanted)) {
			own := wanted[n] == "/m/"+n+".img"
			disks = append(disks, startDisk{name: n, path: wanted[n], made: own && !there[wanted[n]]})
		}
		err := checkDisks(disks, knownDisks{used: used, exists: func(p string) bool { return there[p] }}, fresh)
		inUse := func(p string) bool {
			return slices.ContainsFunc(disks, func(d startDisk) bool { return d.path == p && !d.made })
		}
		bad := false
		for _, d := range disks {
			if !d.made || slices.Contains(fresh, d.name) {
				continue
			}
			if before := used[d.name]; before != "" && !inUse(before) {
				bad = true
			}
			for _, p := range used {
				if p == d.path || there[p] && !inUse(p) {
					bad = true
				}
			}
		}
		if bad != (err != nil) {
			t.Fatalf("used %v, wanted %v, there %v: %v", used, disks, there, err)
		}
		if maps.Equal(used, wanted) && !slices.ContainsFunc(disks, func(d startDisk) bool { return d.made }) && err != nil {
			t.Fatalf("what was used before is refused: %v", err)
		}
	})
}

// A machine that was last run before the names of its disks were kept.
func TestKnownImagesWithoutNames(t *testing.T) {
	made := []startDisk{{name: "system", path: "/m/system.img", made: true}}
	known := knownDisks{images: []string{"/srv/debian.qcow2"}, exists: func(string) bool { return true }}
	var empty *EmptyDiskError
	if err := checkDisks(made, known, nil); !errors.As(err, &empty) || empty.Known != "/srv/debian.qcow2" {
		t.Error(err)
	}
	if err := checkDisks(made, known, []string{"system"}); err != nil {
		t.Error(err)
	}
	given := []startDisk{{name: "system", path: "/srv/debian.qcow2"}, {name: "data", path: "/m/data.img", made: true}}
	if err := checkDisks(given, known, nil); err != nil {
		t.Errorf("a second disk beside the known one: %v", err)
	}
}

func TestGivenOver(t *testing.T) {
	before := Given{Disks: map[string]string{"a": "/a", "b": "/b"}, ImageRepository: "/i", Accelerator: "tcg"}
	got := Given{Disks: map[string]string{"b": "", "c": "/c"}, Accelerator: "kvm"}.over(before)
	if fmt.Sprint(got) != fmt.Sprint(Given{Disks: map[string]string{"a": "/a", "c": "/c"}, ImageRepository: "/i", Accelerator: "kvm"}) {
		t.Error(got)
	}
	before.Secrets = []string{"/s"}
	folders := Given{Shares: []machineconfig.LocalShare{{Tag: "a", Dir: "/a"}, {Tag: "b", Dir: "/b"}}, ManifestDir: "/m"}
	if got := (Given{Shares: []machineconfig.LocalShare{{Tag: "b"}, {Tag: "a", Dir: "/x", ReadOnly: true}, {Tag: "c", Dir: "/c"}}}).over(folders); !slices.Equal(got.Shares, []machineconfig.LocalShare{{Tag: "a", Dir: "/x", ReadOnly: true}, {Tag: "c", Dir: "/c"}}) || got.ManifestDir != "/m" {
		t.Errorf("%+v", got)
	}
	if got := (Given{}).over(before).Secrets; len(got) != 1 {
		t.Errorf("the secrets are forgotten: %v", got)
	}
	if got := (Given{Secrets: []string{"/t"}}).over(before).Secrets; len(got) != 1 || got[0] != "/t" {
		t.Errorf("the new secrets are %v", got)
	}
	if before.Disks["b"] != "/b" {
		t.Error("what was given before was changed")
	}
}
