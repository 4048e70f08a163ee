package controller

import (
	"context"
	"fmt"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The indexes of the caches.
const (
	// byInstance finds objects by the machine that their labels name.
	byInstance = "vmop.instance"
	// byClaim finds the pods that use a claim, and the machines whose disks it
	// is or may become.
	byClaim = "vmop.claim"
	// byPool finds the machines that are assigned from a pool; all that are
	// assigned are under anyPool too, which is the name of no pool.
	byPool  = "vmop.pool"
	anyPool = "*"
)

func addIndexes(ctx context.Context, to client.FieldIndexer) error {
	for _, i := range []struct {
		object client.Object
		name   string
		values client.IndexerFunc
	}{
		{&corev1.Pod{}, byInstance, instanceOf},
		{&corev1.Secret{}, byInstance, instanceOf},
		{&corev1.PersistentVolumeClaim{}, byInstance, instanceOf},
		{&corev1.Pod{}, byClaim, claimsOfPod},
		{newObject(machineKind), byClaim, claimsOfObject},
		{newObject(machineKind), byPool, poolOf},
	} {
		if err := to.IndexField(ctx, i.object, i.name, i.values); err != nil {
			return fmt.Errorf("index %s of %T: %w", i.name, i.object, err)
		}
	}
	return nil
}

func instanceOf(o client.Object) []string {
	if name := o.GetLabels()[reconcile.LabelInstance]; name != "" {
		return []string{name}
	}
	return nil
}

func claimsOfPod(o client.Object) []string {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	var out []string
	for i := range pod.Spec.Volumes {
		if c := pod.Spec.Volumes[i].PersistentVolumeClaim; c != nil {
			out = append(out, c.ClaimName)
		}
	}
	return out
}

func claimsOfObject(o client.Object) []string {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	vm, err := decodeMachine(u)
	if err != nil {
		return nil // the machine is told so when it is reconciled
	}
	return claimNames(vm)
}

// claimNames are the claims that a machine's disks refer to, and the names by
// which the operator would make others.
func claimNames(vm *spec.VirtualMachine) []string {
	out := []string{spec.RunnerDataClaim(vm.Name)}
	for _, d := range reconcile.Disks(vm) {
		if d.Claim != "" {
			out = append(out, d.Claim)
		}
	}
	return out
}

func poolOf(o client.Object) []string {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	pool, _, _ := unstructured.NestedString(u.Object, "status", "assignment", "pool")
	if pool == "" {
		return nil
	}
	return []string{pool, anyPool}
}
