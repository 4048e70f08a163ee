package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	"github.com/vmop/sdk/vmop/spec"
)

// Proposal is what applying a manifest would do to a machine.
type Proposal struct {
	// Before is nil if the machine does not exist yet.
	Before *spec.VirtualMachine
	After  *spec.VirtualMachine
}

// kubectlManager owns what kubectl apply --server-side wrote.
const kubectlManager = "kubectl"

// Propose asks the API server for the result of kubectl apply with a manifest, by a dry run. A
// machine that was created by kubectl apply --server-side is treated likewise, all others as by a
// plain kubectl apply.
func (c *Client) Propose(ctx context.Context, manifest *unstructured.Unstructured) (Proposal, error) {
	namespace, name := manifest.GetNamespace(), manifest.GetName()
	resource := c.dynamic.Resource(machines).Namespace(namespace)
	stored, err := resource.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !missingKind(err) {
		created, err := resource.Create(ctx, manifest, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager})
		if err != nil {
			return Proposal{}, fmt.Errorf("%s/%s would be refused: %w", namespace, name, err)
		}
		after, err := decode(created)
		return Proposal{After: after}, err
	}
	if err != nil {
		return Proposal{}, machineError("read", namespace, name, err)
	}
	var applied *unstructured.Unstructured
	if serverSide(stored) {
		applied, err = resource.Apply(ctx, name, manifest, metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: kubectlManager, Force: true})
	} else {
		var patch []byte
		if patch, err = clientSide(stored, manifest); err != nil {
			return Proposal{}, fmt.Errorf("compare %s/%s: %w", namespace, name, err)
		}
		applied, err = resource.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager})
	}
	if err != nil {
		return Proposal{}, fmt.Errorf("the change of %s/%s would be refused: %w", namespace, name, err)
	}
	var p Proposal
	if p.Before, err = decode(stored); err != nil {
		return p, err
	}
	p.After, err = decode(applied)
	return p, err
}

func serverSide(o *unstructured.Unstructured) bool {
	for _, f := range o.GetManagedFields() {
		if f.Manager == kubectlManager && f.Operation == metav1.ManagedFieldsOperationApply {
			return true
		}
	}
	return false
}

// lastApplied is where a plain kubectl apply stores what it applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// clientSide is the patch of a plain kubectl apply, without the annotation lastApplied.
func clientSide(stored, manifest *unstructured.Unstructured) ([]byte, error) {
	if remembered, ok := stored.GetAnnotations()[lastApplied]; ok {
		manifest = manifest.DeepCopy()
		annotations := manifest.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[lastApplied] = remembered
		manifest.SetAnnotations(annotations)
	}
	modified, err := json.Marshal(manifest.Object)
	if err != nil {
		return nil, err
	}
	current, err := json.Marshal(stored.Object)
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(stored.GetAnnotations()[lastApplied]), modified, current)
}
