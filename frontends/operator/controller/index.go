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

// otherThan indexes the instances of objects that cannot be found by their name.
func otherThan(name func(instance string) string) client.IndexerFunc {
	return func(o client.Object) []string {
		return slices.DeleteFunc(instanceOf(o), func(instance string) bool { return o.GetName() == name(instance) })
	}
}

// podMachines returns the machines that a pod may belong to: by its label, and by its name.
func podMachines(o client.Object) []string {
	return slices.Compact(append(instanceOf(o), o.GetName()))
}

func instanceOf(o client.Object) []string {
	if name := o.GetLabels()[names.LabelInstance]; name != "" {
		return []string{name}
	}
	return nil
}

// foreignOf returns those of an object's claims that cannot be derived from its name.
func foreignOf(o client.Object) []string {
	switch o := o.(type) {
	case *corev1.Pod:
		return foreignClaims(o.Name, objects.PodName, objects.PodClaims(o))
	case *machine:
		return o.foreign
	}
	return nil
}

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
