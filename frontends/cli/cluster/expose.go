package cluster

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

var services = schema.GroupVersionResource{Version: "v1", Resource: "services"}

// Exposure is how a Service exposes a port of a machine.
type Exposure struct {
	// Name is that of the Service; empty means one made of the machine's name and the port.
	Name string
	// Port is the Service's, Target that of the machine's pod; 0 means Port.
	Port, Target int32
	Protocol     corev1.Protocol
	Type         corev1.ServiceType
}

// Service returns the Service of an exposure. It selects the machine's pod, whichever that is at a
// time, and may be created before the machine starts. Like one of kubectl expose, it has no owner.
func (e Exposure) Service(vm *spec.VirtualMachine) *corev1.Service {
	name := e.Name
	if name == "" {
		name = fmt.Sprintf("%s-%d", vm.Name, e.Port)
	}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Type:     e.Type,
			Selector: map[string]string{names.LabelName: names.AppName, names.LabelInstance: vm.Name, names.LabelComponent: names.ComponentRunner},
			Ports:    []corev1.ServicePort{{Name: strings.ToLower(string(e.Protocol)), Protocol: e.Protocol, Port: e.Port, TargetPort: intstr.FromInt32(e.target())}},
		},
	}
}

func (e Exposure) target() int32 {
	if e.Target != 0 {
		return e.Target
	}
	return e.Port
}

// Missing returns what prevents an exposure from reaching the guest, and what to do; empty if
// nothing is known. Target is a port of the pod: with a user network, the manifest defines which
// ports lead to the guest.
func (e Exposure) Missing(vm *spec.VirtualMachine) string {
	user := -1
	for i, n := range vm.Spec.VM.Networks {
		if n.User == nil {
			return "" // what is there is known on its network only
		}
		if user < 0 {
			user = i
		}
		for _, f := range n.User.HostForwards {
			protocol := f.Protocol
			if protocol == "" {
				protocol = spec.ForwardTCP
			}
			if f.HostPort == e.target() && strings.EqualFold(string(protocol), string(e.Protocol)) {
				return ""
			}
		}
	}
	if user < 0 {
		return fmt.Sprintf("%s/%s has no network; it needs one in spec.vm.networks", vm.Namespace, vm.Name)
	}
	return fmt.Sprintf("no network of %s/%s leads port %d (%s) of its pod to the guest; it needs {hostPort: %[3]d, guestPort: PORT, protocol: %[5]s} in spec.vm.networks[%d].user.hostForwards, which waits for a restart",
		vm.Namespace, vm.Name, e.target(), e.Protocol, strings.ToLower(string(e.Protocol)), user)
}

// Expose creates the Service of an exposure; with dryRun the API server only checks it.
func (c *Client) Expose(ctx context.Context, service *corev1.Service, dryRun bool) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(service)
	if err != nil {
		return err
	}
	delete(content, "status")
	options := metav1.CreateOptions{FieldManager: FieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if _, err := c.dynamic.Resource(services).Namespace(service.Namespace).Create(ctx, &unstructured.Unstructured{Object: content}, options); err != nil {
		return fmt.Errorf("create service %s/%s: %w", service.Namespace, service.Name, err)
	}
	return nil
}
