package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/vmop/sdk/vmop/spec"
)

var (
	disks       = spec.GroupVersion().WithResource(spec.ResourceDisks)
	attachments = spec.GroupVersion().WithResource(spec.ResourceAttachments)
)

// ErrNoDisk reports that the cluster has no disk, or attachment, of that name.
var ErrNoDisk = errors.New("no such disk")

// ErrGone reports that the awaited object was deleted.
var ErrGone = errors.New("it was deleted")

// Disks lists the disks of a namespace, or of all if it is empty, sorted by namespace and name.
// Those that cannot be decoded are reported in the error; the others are returned nevertheless.
func (c *Client) Disks(ctx context.Context, namespace string) ([]*spec.VirtualDisk, error) {
	return listOf[spec.VirtualDisk](ctx, c.dynamic.Resource(disks).Namespace(namespace), "disk")
}

// Disk reads one disk.
func (c *Client) Disk(ctx context.Context, namespace, name string) (*spec.VirtualDisk, error) {
	o, err := c.dynamic.Resource(disks).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, diskError("read disk", namespace, name, err)
	}
	return decoded[spec.VirtualDisk](o, "disk")
}

// CreateDisk creates a disk; with dryRun the API server only checks it.
func (c *Client) CreateDisk(ctx context.Context, d *spec.VirtualDisk, dryRun bool) (*spec.VirtualDisk, error) {
	return created(ctx, c.dynamic.Resource(disks).Namespace(d.Namespace), d, "disk", dryRun)
}

// ResizeDisk sets the size of a disk if it still has the version that was read. The API server
// refuses a smaller size.
func (c *Client) ResizeDisk(ctx context.Context, d *spec.VirtualDisk, size string, dryRun bool) (*spec.VirtualDisk, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": d.UID},
		"spec":     map[string]any{"persistentVolumeClaim": map[string]any{"size": size}},
	})
	if err != nil {
		return nil, err
	}
	o := metav1.PatchOptions{FieldManager: FieldManager}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	u, err := c.dynamic.Resource(disks).Namespace(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patch, o)
	if err != nil {
		return nil, diskError("resize disk", d.Namespace, d.Name, err)
	}
	return decoded[spec.VirtualDisk](u, "disk")
}

// DeleteDisk deletes that disk, but no other of its name.
func (c *Client) DeleteDisk(ctx context.Context, d *spec.VirtualDisk, dryRun bool) error {
	return diskError("delete disk", d.Namespace, d.Name, deleteThis(ctx, c.dynamic.Resource(disks).Namespace(d.Namespace), d, dryRun))
}

// Attachments lists the attachments of disks to a machine, sorted by name.
func (c *Client) Attachments(ctx context.Context, namespace, machine string) ([]*spec.VirtualMachineBlockDeviceAttachment, error) {
	all, err := listOf[spec.VirtualMachineBlockDeviceAttachment](ctx, c.dynamic.Resource(attachments).Namespace(namespace), "attachment")
	return slices.DeleteFunc(all, func(a *spec.VirtualMachineBlockDeviceAttachment) bool { return a.Spec.VirtualMachineName != machine }), err
}

// AttachmentsOf lists the attachments of a disk, sorted by name.
func (c *Client) AttachmentsOf(ctx context.Context, namespace, disk string) ([]*spec.VirtualMachineBlockDeviceAttachment, error) {
	all, err := listOf[spec.VirtualMachineBlockDeviceAttachment](ctx, c.dynamic.Resource(attachments).Namespace(namespace), "attachment")
	return slices.DeleteFunc(all, func(a *spec.VirtualMachineBlockDeviceAttachment) bool {
		return a.Spec.BlockDeviceRef != (spec.AttachedBlockDevice{Kind: spec.AttachedDisk, Name: disk})
	}), err
}

// Attach creates an attachment; with dryRun the API server only checks it.
func (c *Client) Attach(ctx context.Context, a *spec.VirtualMachineBlockDeviceAttachment, dryRun bool) (*spec.VirtualMachineBlockDeviceAttachment, error) {
	return created(ctx, c.dynamic.Resource(attachments).Namespace(a.Namespace), a, "attachment", dryRun)
}

// Detach deletes that attachment, but no other of its name.
func (c *Client) Detach(ctx context.Context, a *spec.VirtualMachineBlockDeviceAttachment, dryRun bool) error {
	return diskError("delete attachment", a.Namespace, a.Name, deleteThis(ctx, c.dynamic.Resource(attachments).Namespace(a.Namespace), a, dryRun))
}

// AwaitDisk calls look with each state of a disk, from this one on, until look returns true or an
// error, the disk was deleted ([ErrGone]), or ctx ends, whose cause is then the error.
func (c *Client) AwaitDisk(ctx context.Context, d *spec.VirtualDisk, look func(*spec.VirtualDisk) (bool, error)) error {
	return await(ctx, c.dynamic.Resource(disks).Namespace(d.Namespace), d, "disk", look)
}

// AwaitAttachment is [Client.AwaitDisk] for an attachment.
func (c *Client) AwaitAttachment(ctx context.Context, a *spec.VirtualMachineBlockDeviceAttachment, look func(*spec.VirtualMachineBlockDeviceAttachment) (bool, error)) error {
	return await(ctx, c.dynamic.Resource(attachments).Namespace(a.Namespace), a, "attachment", look)
}

func listOf[T any](ctx context.Context, from dynamic.ResourceInterface, what string) ([]*T, error) {
	var out []*T
	var errs []error
	o := metav1.ListOptions{Limit: 500}
	for {
		list, err := from.List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("list the %ss: %w", what, explainDisks(err))
		}
		slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
			return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
		})
		for i := range list.Items {
			one, err := decoded[T](&list.Items[i], what)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			out = append(out, one)
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return out, errors.Join(errs...)
		}
	}
}

// decoded fails for a number that is too large for its field.
func decoded[T any](u *unstructured.Unstructured, what string) (*T, error) {
	out := new(T)
	data, err := json.Marshal(u.Object)
	if err == nil {
		err = spec.CheckQuantities(data)
	}
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s cannot be understood: %w", what, u.GetNamespace(), u.GetName(), err)
	}
	return out, nil
}

func created[T any](ctx context.Context, in dynamic.ResourceInterface, made *T, what string, dryRun bool) (*T, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	options := metav1.CreateOptions{FieldManager: FieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	u := &unstructured.Unstructured{Object: content}
	answer, err := in.Create(ctx, u, options)
	if err != nil {
		return nil, diskError("create "+what, u.GetNamespace(), u.GetName(), err)
	}
	return decoded[T](answer, what)
}

func deleteThis(ctx context.Context, in dynamic.ResourceInterface, o metav1.Object, dryRun bool) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(o.GetUID())}}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return in.Delete(ctx, o.GetName(), options)
}

func await[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, in dynamic.ResourceInterface, o P, what string, look func(*T) (bool, error)) error {
	selector := fields.OneTermEqualSelector("metadata.name", o.GetName()).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, l metav1.ListOptions) (runtime.Object, error) {
			l.FieldSelector = selector
			return in.List(ctx, l)
		},
		WatchFuncWithContext: func(ctx context.Context, l metav1.ListOptions) (watch.Interface, error) {
			l.FieldSelector = selector
			return in.Watch(ctx, l)
		},
	}
	exists := func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return false, ErrGone
		}
		return false, nil
	}
	// The informer behind it lists again what a broken watch missed.
	_, err := watchtools.UntilWithSync(ctx, lw, &unstructured.Unstructured{}, exists, func(e watch.Event) (bool, error) {
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return false, nil
		}
		if e.Type == watch.Deleted || u.GetUID() != o.GetUID() {
			return false, ErrGone
		}
		now, err := decoded[T](u, what)
		if err != nil {
			return false, err
		}
		return look(now)
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func diskError(verb, namespace, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && !missingKind(err):
		return fmt.Errorf("%s/%s: %w", namespace, name, ErrNoDisk)
	}
	return fmt.Errorf("%s %s/%s: %w", verb, namespace, name, explainDisks(err))
}

func explainDisks(err error) error {
	if missingKind(err) {
		return fmt.Errorf("%w: the cluster does not know VirtualDisks and their attachments (apply deploy/definitions of this version)", err)
	}
	return err
}
