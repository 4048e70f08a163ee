package spec

import (
	"strings"
	"testing"
)

func TestShares(t *testing.T) {
	claim := func(name string) *VolumeClaimReference { return &VolumeClaimReference{ClaimName: name} }
	for _, c := range []struct {
		name   string
		shares []Share
		want   string // field and a part of the message; "" if nothing is wrong
	}{
		{"two", []Share{{Tag: "src", HostPath: "src"}, {Tag: "data", PersistentVolumeClaim: claim("shared"), ReadOnly: true, Protocol: Share9P, MountPoint: "/srv"}}, ""},
		{"no tag", []Share{{HostPath: "src"}}, "shares[0].tag: the guest mounts"},
		{"a tag with a comma", []Share{{Tag: "a,b", HostPath: "src"}}, "shares[0].tag: letters"},
		{"a tag of 32", []Share{{Tag: strings.Repeat("a", 32), HostPath: "src"}}, "shares[0].tag: 31"},
		{"the tag of a disk", []Share{{Tag: "vdb", HostPath: "src"}}, "shares[0].tag: cloud-init"},
		{"equal tags", []Share{{Tag: "a", HostPath: "src"}, {Tag: "a", HostPath: "doc", MountPoint: "/doc"}}, "shares[1].tag: is also the tag of"},
		{"equal places", []Share{{Tag: "a", HostPath: "src"}, {Tag: "b", HostPath: "doc", MountPoint: "/mnt/a"}}, "shares[1].mountPoint: is also the place of"},
		{"a place with a space", []Share{{Tag: "a", HostPath: "src", MountPoint: "/mnt/a b"}}, "shares[0].mountPoint: absolute path"},
		{"a relative place", []Share{{Tag: "a", HostPath: "src", MountPoint: "a"}}, "shares[0].mountPoint: absolute path"},
		{"nothing", []Share{{Tag: "a"}}, "shares[0]: there is none"},
		{"both", []Share{{Tag: "a", HostPath: "src", PersistentVolumeClaim: claim("shared")}}, "shares[0]: there are both"},
		{"a line break", []Share{{Tag: "a", HostPath: "a\nb"}}, "shares[0].hostPath: control characters"},
		{"the runner's data", []Share{{Tag: "a", PersistentVolumeClaim: claim("web-runner-data")}}, "claimName: reserved"},
		{"a disk of the machine", []Share{{Tag: "a", PersistentVolumeClaim: claim("web-disk-0")}}, "claimName: same volume claim as that of spec.vm.disks[0]"},
		{"a protocol that is none", []Share{{Tag: "a", HostPath: "src", Protocol: "nfs"}}, "protocol: virtiofs"},
		{"nine", func() (out []Share) {
			for _, tag := range strings.Split("a b c d e f g h i", " ") {
				out = append(out, Share{Tag: tag, HostPath: "src"})
			}
			return out
		}(), "shares: 8"},
	} {
		vm := NewVirtualMachine("lab", "web")
		one := int32(1)
		vm.Spec.VM.MaximumCPUs = &one
		vm.Spec.VM.Disks = []Disk{{VolumeClaimTemplate: &VolumeClaimTemplate{}}}
		vm.Spec.VM.Shares = c.shares
		var found []string
		for _, e := range Validate(vm) {
			if !strings.Contains(e.Field, "disks") {
				found = append(found, e.Error())
			}
		}
		field, text, _ := strings.Cut(c.want, ": ")
		switch {
		case c.want == "" && len(found) > 0:
			t.Errorf("%s: %v", c.name, found)
		case c.want != "" && (len(found) == 0 || !strings.Contains(found[0], field+": ") || !strings.Contains(strings.Join(found, "\n"), text)):
			t.Errorf("%s: %v, want %s", c.name, found, c.want)
		}
	}
}
