package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

var (
	classes = spec.GroupVersion().WithResource(spec.ResourceClasses)
)

// Foresee returns the changes by a proposal for an existing machine, see [machinekind.Foresee]. If
// the user may not read what the machine runs with, it returns an error and the changes by the
// manifests alone.
func (c *Client) Foresee(ctx context.Context, p Proposal) ([]changes.Change, error) {
	s := machinekind.Snapshot{VM: p.Before}
	if p.Before.Status.Created {
		if err := c.observe(ctx, &s, p.After); err != nil {
			return changes.Between(p.Before, p.After, changes.Options{}), err
		}
	}
	return machinekind.Foresee(s, p.After), nil
}

func (c *Client) observe(ctx context.Context, s *machinekind.Snapshot, after *spec.VirtualMachine) error {
	vm := s.VM
	o := metav1.ListOptions{LabelSelector: names.LabelInstance + "=" + vm.Name}
	if err := each(ctx, c, pods, vm.Namespace, o, func(pod *corev1.Pod) { s.Pods = append(s.Pods, *pod) }); err != nil {
		return fmt.Errorf("list the pods of %s/%s: %w", vm.Namespace, vm.Name, err)
	}
	pod := s.Pod()
	if pod == nil {
		return nil
	}
	attached, err := c.Attachments(ctx, vm.Namespace, vm.Name)
	if err != nil && !missingKind(err) {
		return err
	}
	for _, a := range attached {
		s.Attachments = append(s.Attachments, *a)
	}
	err = each(ctx, c, classes, "", metav1.ListOptions{}, func(class *spec.VirtualMachineClass) { s.Classes = append(s.Classes, *class) })
	if err != nil && !missingKind(err) {
		return fmt.Errorf("list the classes: %w", err)
	}
	// A claim of the pod counts as used, whatever it holds.
	had := objects.PodClaims(pod)
	for _, name := range objects.ClaimNames(after) {
		if slices.Contains(had, name) {
			continue
		}
		u, err := c.dynamic.Resource(volumeClaims).Namespace(vm.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read claim %s/%s: %w", vm.Namespace, name, err)
		}
		claim, err := decoded[corev1.PersistentVolumeClaim](u, "claim")
		if err != nil {
			return err
		}
		s.Claims = append(s.Claims, *claim)
	}
	return nil
}
