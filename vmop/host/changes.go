package host

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// Changes are the differences between two manifests of a machine of one host, where
// a disk is an image and no volume claim. Names and namespaces are no differences: of the
// manifests of two machines it says how one would have to change to be like the other.
// Nil stands for a machine of which nothing is written down. A disk that was there at
// the start of a machine goes with its next start only; of one that came while it runs,
// [Host.Apply] knows.
func Changes(before, after *spec.VirtualMachine) []changes.Change { return between(before, after, nil) }

// between is [Changes] for a machine that runs with disks, by their claims, that were
// plugged into it.
func between(before, after *spec.VirtualMachine, plugged []string) []changes.Change {
	return changes.Between(before, after, changes.Options{PlugsDisks: true, Plugged: plugged, Judge: judgeImage})
}

// judgeImage says what becomes of a change of a disk that is an image.
func judgeImage(c *changes.Change) {
	if !strings.HasPrefix(c.Path, "spec.vm.disks[") || !strings.Contains(c.Path, ".volumeClaimTemplate.spec.") {
		return
	}
	size := strings.HasSuffix(c.Path, ".resources.requests[storage]")
	switch {
	case size && c.Applied == changes.AppliedNever:
		c.Reason = "a disk image does not shrink; make a new disk and copy the data"
	case size:
		c.Applied, c.Reason = changes.AppliedLive, "the image in the machine's directory grows, also while the machine runs; one that --disk names keeps its size"
	default:
		c.Applied, c.Reason = changes.AppliedNever, "it is for volume claims of a cluster, and means nothing on one host"
	}
}

// keepSizes says of the disks that were given, by their names, that a larger size in the
// manifest does not reach them: what lies elsewhere is enlarged by [Host.ResizeDisk] only.
func keepSizes(found []changes.Change, vm *spec.VirtualMachine, given map[string]string) {
	for _, d := range machineconfig.Disks(vm) {
		path := given[d.Name]
		if path == "" {
			continue
		}
		for i := range found {
			if c := &found[i]; strings.HasPrefix(c.Path, d.Field()+".volumeClaimTemplate.") && strings.HasSuffix(c.Path, ".resources.requests[storage]") {
				c.Applied, c.Reason = changes.AppliedNever, fmt.Sprintf("the disk is %s, which was given and keeps its size: disk resize enlarges it", path)
			}
		}
	}
}
