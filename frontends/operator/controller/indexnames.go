package controller

import (
	"slices"

	"github.com/vmop/sdk/vmop/reconcile/objects"
)

// The indexes of the caches. An entry costs a third of a kilobyte, so only what cannot be found by
// name is indexed.
const (
	// byInstance finds objects of a machine whose names differ from those that the operator gives.
	byInstance = "vmop.instance"
	// byClaim finds the pods that use a claim, and the machines that refer to it, if the claim
	// cannot be derived from the machine's name.
	byClaim = "vmop.claim"
	// anyClaim, which is not a valid name, is under byClaim for machines that cannot be decoded:
	// they may refer to any claim.
	anyClaim = "*"
	// byShare finds the machines that share a claim as a folder.
	byShare    = "vmop.share"
	byHostPort = "vmop.hostPort"
	// byPool finds the machines that are assigned from a pool; all assigned machines are also under
	// anyPool, which is not a valid name.
	byPool  = "vmop.pool"
	anyPool = "*"
	byClass = "vmop.class"
	// byMachine finds the operations and the attachments of a machine. The latter are under
	// byClaim, too.
	byMachine = "vmop.machine"
	// byClusterImage finds the disks and images that are copies of an image of the cluster.
	byClusterImage = "vmop.clusterImage"
)

// foreignClaims returns those of the claims that cannot be derived from the object's name; of
// derives an object's claim from the machine's name.
func foreignClaims(name string, of func(machine string) string, claims []string) []string {
	return slices.DeleteFunc(claims, func(claim string) bool {
		return slices.ContainsFunc(objects.ClaimMachines(claim), func(machine string) bool { return of(machine) == name })
	})
}

func itself(machine string) string { return machine }
