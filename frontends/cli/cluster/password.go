package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// ErrNoPassword reports that the display of a machine has no password.
var ErrNoPassword = errors.New("its display has no password")

const attempts = 5

// ConsolePassword returns the password that opens the display of a machine now. If the one in the
// secret has expired, it is replaced by the candidate, and the machine gets a moment to apply it.
// If the caller has the right to, user is written to the machine's status as the console's user:
// the right to the password is that to the secret.
func (c *Client) ConsolePassword(ctx context.Context, namespace, name, user, candidate string, validity time.Duration) (string, error) {
	for n := 1; ; n++ {
		password, err := c.consolePassword(ctx, namespace, name, user, candidate, validity)
		if !apierrors.IsConflict(err) || n == attempts {
			return password, err
		}
	}
}

func (c *Client) consolePassword(ctx context.Context, namespace, name, user, candidate string, validity time.Duration) (string, error) {
	vm, err := c.Machine(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	labels := objects.InstanceLabels(name)
	delete(labels, names.LabelManagedBy)
	labels[names.LabelComponent] = names.ComponentDisplaySecret
	found, err := c.Secrets(ctx, namespace, labels)
	if err != nil {
		return "", err
	}
	plan, err := console.Open(console.Request{
		VM: vm, User: user, Secret: objects.PickDisplaySecret(name, found),
		Now: time.Now(), Validity: validity, Candidate: candidate,
	})
	if err != nil {
		return "", err
	}
	if plan.Password == "" {
		return "", fmt.Errorf("%s/%s: %w", namespace, name, ErrNoPassword)
	}
	if plan.User != nil {
		patch, err := plan.User.Patch()
		if err != nil {
			return "", err
		}
		if _, err := c.dynamic.Resource(machines).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: console.StatusManager}, "status"); err != nil && !apierrors.IsForbidden(err) {
			return "", fmt.Errorf("write the user of the console of %s/%s: %w", namespace, name, err)
		}
	}
	if plan.NewPassword == nil {
		return plan.Password, nil
	}
	patch, err := plan.NewPassword.Patch()
	if err != nil {
		return "", err
	}
	if _, err := c.dynamic.Resource(secrets).Namespace(namespace).Patch(ctx, plan.NewPassword.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: FieldManager}); err != nil {
		return "", fmt.Errorf("write the display password of %s/%s: %w", namespace, name, err)
	}
	wait, cancel := context.WithTimeout(ctx, plan.Wait)
	defer cancel()
	err = c.Follow(wait, vm, func(vm *spec.VirtualMachine) (bool, error) {
		return vm.Status.DisplayPasswordSerial >= plan.Serial, nil
	})
	if err != nil && wait.Err() == nil {
		return "", fmt.Errorf("wait for the display password of %s/%s: %w", namespace, name, err)
	}
	// A machine that is late will apply it soon.
	return plan.Password, ctx.Err()
}
