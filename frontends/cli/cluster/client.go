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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

// ErrNotFound reports that the cluster has no machine of that name.
var ErrNotFound = errors.New("no such machine")

// Options choose a cluster as kubectl's flags do.
type Options struct {
	// Kubeconfig is the path of the configuration; empty means $KUBECONFIG, ~/.kube/config, or the
	// configuration of the pod in which the program runs.
	Kubeconfig string
	// Context is the entry to use; empty means the current one.
	Context string
	// Namespace is that of names without one; empty means the context's.
	Namespace string
	// Warn is called with the API server's warnings.
	Warn func(string)
}

// Client works with the machines of a cluster.
type Client struct {
	// Namespace is that of names without one.
	Namespace string

	dynamic dynamic.Interface
	rest    rest.Interface
	config  *rest.Config
}

var (
	machines = spec.GroupVersion().WithResource(spec.ResourceVirtualMachines)
	pods     = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configs  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	events   = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

// ErrNoCluster reports that no cluster is configured.
var ErrNoCluster = errors.New("no cluster is configured: there is no kubeconfig file; name one with --kubeconfig FILE or $KUBECONFIG")

// Connect reads the configuration. It makes no request.
func Connect(o Options) (*Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.Context, Context: contextOf(o.Namespace)})
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, ErrNoCluster
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return New(config, namespace, o.Warn)
}

// New returns a client for a given configuration.
func New(config *rest.Config, namespace string, warn func(string)) (*Client, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = warningHandler{warn}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	config.APIPath, config.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = newSerializer()
	r, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &Client{Namespace: namespace, dynamic: d, rest: r, config: config}, nil
}

type warningHandler struct{ warn func(string) }

// HandleWarningHeader implements [rest.WarningHandler].
func (h warningHandler) HandleWarningHeader(code int, _ string, text string) {
	if code == 299 && text != "" && h.warn != nil {
		h.warn(text)
	}
}

// Machines lists the machines of a namespace, or of all if it is empty, sorted by namespace and
// name. Those that cannot be decoded are reported in the error; the others are returned
// nevertheless.
func (c *Client) Machines(ctx context.Context, namespace string) ([]*spec.VirtualMachine, error) {
	var out []*spec.VirtualMachine
	var errs []error
	o := metav1.ListOptions{Limit: 500}
	for {
		list, err := c.dynamic.Resource(machines).Namespace(namespace).List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("list the machines: %w", explain(err))
		}
		for i := range list.Items {
			vm, err := decode(&list.Items[i])
			if err != nil {
				errs = append(errs, err)
				continue
			}
			out = append(out, vm)
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			break
		}
	}
	slices.SortFunc(out, func(a, b *spec.VirtualMachine) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out, errors.Join(errs...)
}

// Machine reads one machine.
func (c *Client) Machine(ctx context.Context, namespace, name string) (*spec.VirtualMachine, error) {
	o, err := c.dynamic.Resource(machines).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, machineError("read", namespace, name, err)
	}
	return decode(o)
}

// Power requests that a machine be started, stopped or restarted, and returns the updated machine.
// A state is written to spec.vm.state if there is no run policy; everything else is an annotation,
// in which unique, a value not used before, distinguishes the request from earlier ones. Nothing is
// written if the machine is already as requested. With force, also a value not used before, the
// guest of the present pod is not waited for.
func (c *Client) Power(ctx context.Context, namespace, name string, verb machine.Verb, unique, force string) (*spec.VirtualMachine, error) {
	vm, err := c.Machine(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	annotations, fields := map[string]any{}, map[string]any{}
	if force != "" {
		annotations[names.AnnotationForceStop] = force
	}
	state := spec.StateRunning
	if verb == machine.VerbStop {
		state = spec.StateStopped
	}
	switch {
	case vm.Spec.RunPolicy == "" && verb != machine.VerbRestart:
		fields["spec"] = map[string]any{"vm": map[string]any{"state": state}}
	case verb != machine.VerbRestart && vm.DeletionTimestamp != nil:
	case verb != machine.VerbRestart && vm.ShouldRun() == (state == spec.StateRunning) && machine.Answered(vm):
	default:
		if why := machine.Refusal(vm, verb); why != "" {
			return nil, fmt.Errorf("%s %s/%s: %s", verb, namespace, name, why)
		}
		annotations[names.AnnotationPowerRequest] = machine.Request(verb, unique)
	}
	if len(annotations) > 0 {
		fields["metadata"] = map[string]any{"annotations": annotations}
	}
	if len(fields) == 0 {
		return vm, nil
	}
	return c.patch(ctx, namespace, name, fields)
}

// Annotate sets an annotation of a machine.
func (c *Client) Annotate(ctx context.Context, namespace, name, key, value string) (*spec.VirtualMachine, error) {
	return c.patch(ctx, namespace, name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

func (c *Client) patch(ctx context.Context, namespace, name string, fields map[string]any) (*spec.VirtualMachine, error) {
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	o, err := c.dynamic.Resource(machines).Namespace(namespace).Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, machineError("change", namespace, name, err)
	}
	return decode(o)
}

// FieldManager owns the fields that vmop-cli writes.
const FieldManager = "vmop-cli"

// decode goes through JSON: apimachinery's converter changes a number that is too large for its
// field.
func decode(o *unstructured.Unstructured) (*spec.VirtualMachine, error) {
	vm := &spec.VirtualMachine{}
	data, err := json.Marshal(o.Object)
	if err == nil {
		err = json.Unmarshal(data, vm)
	}
	if err != nil {
		return nil, fmt.Errorf("machine %s/%s cannot be understood: %w", o.GetNamespace(), o.GetName(), err)
	}
	return vm, nil
}

func machineError(verb, namespace, name string, err error) error {
	if apierrors.IsNotFound(err) && !missingKind(err) {
		return fmt.Errorf("%s/%s: %w", namespace, name, ErrNotFound)
	}
	return fmt.Errorf("%s %s/%s: %w", verb, namespace, name, explain(err))
}

// missingKind reports whether the API server does not know the resource at all: it names no object
// then.
func missingKind(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) &&
		(status.Status().Details == nil || status.Status().Details.Name == "")
}

func explain(err error) error {
	if missingKind(err) {
		return fmt.Errorf("%w: the cluster does not know virtual machines; is the operator installed (kubectl apply -k deploy)?", err)
	}
	return err
}
