package host

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// Changes are the differences between two manifests of a machine of one host, where a disk is an
// image and not a volume claim. It ignores names and namespaces, so that the manifests of two
// machines can be compared. Nil is a machine without a manifest. A disk that existed at the start
// of a machine is only removed by its next start; [Host.Apply] knows those that were added while it
// runs.
func Changes(before, after *spec.VirtualMachine) []changes.Change { return between(before, after, nil) }

// between is [Changes] for a running machine into which disks, by their claims, were plugged.
func between(before, after *spec.VirtualMachine, plugged []string) []changes.Change {
	return changes.Between(before, after, changes.Options{PlugsDisks: true, Plugged: plugged, Judge: judgeImage})
}

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

// keepSizes marks a larger size of given disks as not applied: images elsewhere are only enlarged
// by [Host.ResizeDisk].
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
