package machine

import (
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Leftover is an object that is to be deleted, if it still has the UID: a
// ConfigMap or a StatefulSet, never a volume claim or a secret.
type Leftover struct {
	Kind, Name string
	UID        types.UID
}

// kindStatefulSet is what VM-Operator made before its version 3.4.
const kindStatefulSet = "StatefulSet"

// Leftovers are the objects of a namespace that VM-Operator made for machines
// that are gone and that nothing else deletes: those that have an owner
// Kubernetes deletes with it. VM-Operator looks for them when it starts.
//
// machines are the names of all machines of the namespace, read after the
// objects: the other way round, a new machine would lose what it was just
// given. pods are the names of the pods of machines that there are, by their labels: of
// a machine that was deleted with --cascade=orphan the pod runs on, which reads its
// ConfigMap. That goes when the pod has gone. Objects of other kinds and those that VM-Operator has not written itself are
// passed over, whatever their labels.
func Leftovers(machines, pods []string, objects []metav1.PartialObjectMetadata) []Leftover {
	var out []Leftover
	for i := range objects {
		o := &objects[i]
		if o.Kind != names.KindConfigMap && o.Kind != kindStatefulSet {
			continue
		}
		mine := o.Labels[names.LabelName] == names.AppName && o.Labels[names.LabelManagedBy] == names.ManagedBy
		// Labels are anybody's, and a copy from a backup may come before its machine.
		written := slices.ContainsFunc(o.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == names.FieldManager })
		// What belongs to an object of another kind of the group is no machine's.
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
