package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmop/sdk/internal/applytext"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/runner/vmstatus"
)

// readManager owns no fields: its applies do not change what is stored.
const readManager = "vmop-runner-reads"

var (
	machines  = schema.GroupVersionResource{Group: names.Group, Version: names.Version, Resource: names.ResourceVirtualMachines}
	eventsAPI = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// Client is the [API] of a machine in a cluster.
type Client struct {
	namespace, name string
	dynamic         dynamic.Interface
	http            *http.Client
}

// NewClient returns a client for one machine. Warnings of the API server go to the configuration's
// WarningHandler.
func NewClient(config *rest.Config, namespace, name string) (*Client, error) {
	config = rest.CopyConfig(config)
	config.Wrap(applytext.Wrap)
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	d, err := dynamic.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	return &Client{namespace: namespace, name: name, dynamic: d, http: h}, nil
}

// Machine implements [API]. A right to read would cover all machines of the namespace, with their
// secrets. Writing the status of its machine is a runner's only right, and a dry run that writes
// nothing is answered with what is stored.
func (c *Client) Machine(ctx context.Context) (Machine, error) {
	nothing := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": names.Group + "/" + names.Version, "kind": names.KindVirtualMachine, "metadata": map[string]any{"namespace": c.namespace, "name": c.name},
	}}
	o, err := c.dynamic.Resource(machines).Namespace(c.namespace).ApplyStatus(ctx, c.name, nothing,
		metav1.ApplyOptions{FieldManager: readManager, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return Machine{}, c.explain("read", err)
	}
	m := Machine{UID: string(o.GetUID()), ResourceVersion: o.GetResourceVersion(), ForceStop: o.GetAnnotations()[names.AnnotationForceStop], PowerdownTimeout: -1}
	for _, field := range [][]string{{"spec", "vm", "powerdownTimeout"}, {"spec", "terminationGracePeriodSeconds"}} {
		if seconds, found, err := unstructured.NestedInt64(o.Object, field...); found && err == nil {
			m.PowerdownTimeout = seconds
		}
	}
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return m, nil // what is stored is overwritten in any case
	}
	data, err := json.Marshal(conditions)
	if err == nil {
		err = json.Unmarshal(data, &m.Conditions)
	}
	if err != nil {
		m.Conditions = nil
	}
	return m, nil
}

// ApplyStatus implements [API].
func (c *Client) ApplyStatus(ctx context.Context, m Machine, status *vmstatus.Status) error {
	part, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("write the status of %s/%s: %w", c.namespace, c.name, err)
	}
	metadata := map[string]any{"namespace": c.namespace, "name": c.name}
	if m.ResourceVersion != "" {
		metadata["resourceVersion"] = m.ResourceVersion
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": names.Group + "/" + names.Version, "kind": names.KindVirtualMachine, "metadata": metadata, "status": part,
	}}
	o, err = c.dynamic.Resource(machines).Namespace(c.namespace).ApplyStatus(ctx, c.name, o,
		metav1.ApplyOptions{FieldManager: names.RunnerStatusManager, Force: true})
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("write the status of %s/%s: %w", c.namespace, c.name, ErrConflict)
	case err != nil:
		return c.explain("write the status of", err)
	case string(o.GetUID()) != m.UID:
		return fmt.Errorf("write the status of %s/%s: %w, and there is another one of its name", c.namespace, c.name, ErrGone)
	}
	return nil
}

// CreateEvent implements [API].
func (c *Client) CreateEvent(ctx context.Context, uid string, e Event) error {
	o := &unstructured.Unstructured{Object: e.object(c.namespace, c.name, uid)}
	_, err := c.dynamic.Resource(eventsAPI).Namespace(c.namespace).Create(ctx, o, metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("create an event about %s/%s: %w (%w)", c.namespace, c.name, ErrRefused, err)
	}
	return c.explain("create an event about", err)
}

// CloseIdle implements [API].
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

func (c *Client) explain(what string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %s/%s: %w (%w)", what, c.namespace, c.name, ErrGone, err)
	}
	return fmt.Errorf("%s %s/%s: %w", what, c.namespace, c.name, err)
}
