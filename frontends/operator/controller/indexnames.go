package controller

import (
	"slices"

	"github.com/vmop/sdk/vmop/reconcile/objects"
)

// The indexes of the caches. An entry costs a third of a kilobyte, so that only
// what cannot be found by a name has any: a machine's own objects have none.
const (
	// byInstance finds objects of a machine that have other names than the
	// operator gives.
	byInstance = "vmop.instance"
	// byClaim finds the pods that use a claim, and the machines that refer to
	// it, if the claim's name does not lead to them.
	byClaim = "vmop.claim"
	// anyClaim, which is the name of none, is under byClaim for machines that cannot
	// be understood: they may refer to any.
	anyClaim = "*"
	// byShare finds the machines that have a claim as a folder.
	byShare = "vmop.share"
	// byHostPort finds the pods that take a port of their node.
	byHostPort = "vmop.hostPort"
	// byPool finds the machines that are assigned from a pool; all that are
	// assigned are under anyPool too, which is the name of no pool.
	byPool  = "vmop.pool"
	anyPool = "*"
	// byClass finds the machines that name a class.
	byClass = "vmop.class"
	// byMachine finds the operations and the attachments of a machine. The latter are
	// under byClaim, too.
	byMachine = "vmop.machine"
	// byClusterImage finds the disks and images that are made of an image of the cluster.
	byClusterImage = "vmop.clusterImage"
)

// foreignClaims are those of the claims whose names do not lead to an object's, by the name
// that the object of a machine has.
func foreignClaims(name string, of func(machine string) string, claims []string) []string {
	return slices.DeleteFunc(claims, func(claim string) bool {
		return slices.ContainsFunc(objects.ClaimMachines(claim), func(machine string) bool { return of(machine) == name })
	})
}

// itself is the name of what has that of its machine.
func itself(machine string) string { return machine }
