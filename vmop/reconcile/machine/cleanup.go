package machine

import (
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Leftover is an object to delete if it still has the UID: a ConfigMap or a StatefulSet, never a
// volume claim or a secret.
type Leftover struct {
	Kind, Name string
	UID        types.UID
}

const kindStatefulSet = "StatefulSet"

// Leftovers returns the objects of a namespace that VM-Operator created for machines that no
// longer exist and that the garbage collector does not delete. VM-Operator looks for them when it
// starts.
//
// machines are the names of all machines of the namespace, read after the objects: otherwise a
// new machine would lose its objects. pods are the names of the machines' pods, by their labels:
// the pod of a machine deleted with --cascade=orphan runs on and reads its ConfigMap, which is
// kept until the pod has been deleted. Objects of other kinds and those not written by
// VM-Operator are skipped, whatever their labels.
func Leftovers(machines, pods []string, objects []metav1.PartialObjectMetadata) []Leftover {
	var out []Leftover
	for i := range objects {
		o := &objects[i]
		if o.Kind != names.KindConfigMap && o.Kind != kindStatefulSet {
			continue
		}
		mine := o.Labels[names.LabelName] == names.AppName && o.Labels[names.LabelManagedBy] == names.ManagedBy
		// Any user may set labels, and a copy from a backup may come before its machine.
		written := slices.ContainsFunc(o.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == names.FieldManager })
		// An object owned by another kind of the group is no machine's.
		owned := slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Kind == spec.KindVirtualMachine || strings.HasPrefix(r.APIVersion, names.Group+"/")
		})
		used := o.Kind == names.KindConfigMap && slices.Contains(pods, o.Name)
		if mine && written && !used && !owned && o.DeletionTimestamp == nil && !slices.Contains(machines, o.Name) {
			out = append(out, Leftover{Kind: o.Kind, Name: o.Name, UID: o.UID})
		}
	}
	return out
}
