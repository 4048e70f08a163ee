package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// fieldIndex is an index of the objects of a type.
type fieldIndex struct {
	object client.Object
	name   string
	values client.IndexerFunc
}

func indexes() []fieldIndex {
	return []fieldIndex{
		{&corev1.Pod{}, byInstance, otherThan(objects.PodName)},
		{&corev1.Secret{}, byInstance, otherThan(objects.DisplaySecretName)},
		{&corev1.ConfigMap{}, byInstance, otherThan(itself)},
		{&corev1.Pod{}, byClaim, foreignOf},
		{&corev1.Pod{}, byHostPort, hostPortsOf},
		{&machine{}, byClaim, foreignOf},
		{&machine{}, byShare, sharedBy},
		{&machine{}, byPool, poolOf},
		{&machine{}, byClass, classNamed},
		{&storedOperation{}, byMachine, operatedOn},
		{&storedDisk{}, byClusterImage, madeOf},
		{&storedImage{}, byClusterImage, madeOf},
		{&storedAttachment{}, byMachine, attachedTo},
		{&storedAttachment{}, byClaim, attachedClaim},
	}
}

func addIndexes(ctx context.Context, to client.FieldIndexer) error {
	for _, i := range indexes() {
		if err := to.IndexField(ctx, i.object, i.name, i.values); err != nil {
			return fmt.Errorf("index %s of %T: %w", i.name, i.object, err)
		}
	}
	return nil
}

// otherThan are the instances of objects that do not have the name that they
// would be looked for by.
func otherThan(name func(instance string) string) client.IndexerFunc {
	return func(o client.Object) []string {
		return slices.DeleteFunc(instanceOf(o), func(instance string) bool { return o.GetName() == name(instance) })
	}
}

// podMachines are the machines that a pod may be of: by its label, and by its name.
func podMachines(o client.Object) []string {
	return slices.Compact(append(instanceOf(o), o.GetName()))
}

func instanceOf(o client.Object) []string {
	if name := o.GetLabels()[names.LabelInstance]; name != "" {
		return []string{name}
	}
	return nil
}

// foreignOf are those of an object's claims that its name does not lead to.
func foreignOf(o client.Object) []string {
	switch o := o.(type) {
	case *corev1.Pod:
		return foreignClaims(o.Name, objects.PodName, objects.PodClaims(o))
	case *machine:
		return o.foreign
	}
	return nil
}

// foreignClaims are those of the claims whose names do not lead to an object's, by the name
// that the object of a machine has.
func foreignClaims(name string, of func(machine string) string, claims []string) []string {
	return slices.DeleteFunc(claims, func(claim string) bool {
		return slices.ContainsFunc(objects.ClaimMachines(claim), func(machine string) bool { return of(machine) == name })
	})
}

// itself is the name of what has that of its machine.
func itself(machine string) string { return machine }

func sharedBy(o client.Object) []string {
	if m, ok := o.(*machine); ok {
		return m.shared
	}
	return nil
}

func hostPortsOf(o client.Object) []string {
	if pod, ok := o.(*corev1.Pod); ok {
		return machinekind.HostPorts(pod)
	}
	return nil
}

func poolOf(o client.Object) []string {
	if m, ok := o.(*machine); ok && m.pool != "" {
		return []string{m.pool, anyPool}
	}
	return nil
}
