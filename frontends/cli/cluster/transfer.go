package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

var images = spec.GroupVersion().WithResource(spec.ResourceImages)

// Image reads one image.
func (c *Client) Image(ctx context.Context, namespace, name string) (*spec.VirtualImage, error) {
	o, err := c.dynamic.Resource(images).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, diskError("read image", namespace, name, err)
	}
	return decoded[spec.VirtualImage](o, "image")
}

// CreateImage creates an image; with dryRun the API server only checks it.
func (c *Client) CreateImage(ctx context.Context, i *spec.VirtualImage, dryRun bool) (*spec.VirtualImage, error) {
	return created(ctx, c.dynamic.Resource(images).Namespace(i.Namespace), i, "image", dryRun)
}

// AwaitImage is [Client.AwaitDisk] for an image.
func (c *Client) AwaitImage(ctx context.Context, i *spec.VirtualImage, look func(*spec.VirtualImage) (bool, error)) error {
	return await(ctx, c.dynamic.Resource(images).Namespace(i.Namespace), i, "image", look)
}

// AskToDownload requests a pod that serves a disk or an image for download, if that still has the
// version that was read; request is a value that was not used before.
func (c *Client) AskToDownload(ctx context.Context, o metav1.Object, request string) error {
	return c.ask(ctx, o, "download", names.AnnotationDownloadRequest, request)
}

// AskToUpload requests a pod that receives an upload to a disk or an image, if that still has the
// version that was read; request is a value that was not used before.
func (c *Client) AskToUpload(ctx context.Context, o metav1.Object, request string) error {
	return c.ask(ctx, o, "upload to", names.AnnotationUploadRequest, request)
}

func (c *Client) ask(ctx context.Context, o metav1.Object, verb, annotation, request string) error {
	resource, what := disks, "disk"
	if _, is := o.(*spec.VirtualImage); is {
		resource, what = images, "image"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.GetUID(), "annotations": map[string]string{annotation: request}}})
	if err != nil {
		return err
	}
	_, err = c.dynamic.Resource(resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return diskError(fmt.Sprintf("ask to %s %s", verb, what), o.GetNamespace(), o.GetName(), err)
}
