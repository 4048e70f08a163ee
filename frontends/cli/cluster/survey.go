package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

// Survey is everything that was found to belong to machines.
type Survey struct {
	Objects []unstructured.Unstructured
	// Unseen has the reason for each kind that could not be read.
	Unseen map[string]string
}

type survey struct {
	*Client
	found Survey
}

// Survey reads the machines of a namespace, or of all if it is empty, and everything that belongs
// to them except secrets. The right to read machines is required; other kinds that are refused are
// reported in the result. The installed objects are looked up by kind and name.
func (c *Client) Survey(ctx context.Context, namespace string, installed []unstructured.Unstructured) (Survey, error) {
	s := &survey{Client: c, found: Survey{Unseen: map[string]string{}}}
	vms, err := s.list(ctx, machines, namespace, metav1.ListOptions{})
	if err != nil {
		return Survey{}, fmt.Errorf("list the machines: %w", explain(err))
	}
	namespaces := map[string]bool{}
	for i := range vms {
		namespaces[vms[i].GetNamespace()] = true
	}
	if namespace != "" {
		namespaces[namespace] = true
	}
	s.found.Objects = vms
	runners := metav1.ListOptions{LabelSelector: names.LabelName + "=" + names.AppName}
	s.add(ctx, spec.KindVMPool, spec.GroupVersion().WithResource(spec.ResourceVMPools), namespace, metav1.ListOptions{})
	s.add(ctx, "Pod", pods, namespace, runners)
	for _, n := range slices.Sorted(maps.Keys(namespaces)) {
		s.inNamespace(ctx, n, runners)
	}
	s.add(ctx, "Node", schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "", metav1.ListOptions{})
	s.add(ctx, "CSIDriver", schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}, "", metav1.ListOptions{})
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for _, resource := range []string{spec.ResourceVirtualMachines, spec.ResourceVMPools} {
		s.addOne(ctx, "CustomResourceDefinition", definitions, "", resource+"."+spec.GroupName)
	}
	s.volumes(ctx)
	s.named(ctx, installed)
	return s.found, ctx.Err()
}

func (s *survey) inNamespace(ctx context.Context, n string, runners metav1.ListOptions) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	s.addOne(ctx, "Namespace", schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", n)
	s.add(ctx, "ConfigMap", configMaps, n, runners)
	s.add(ctx, "ConfigMap", configMaps, n, metav1.ListOptions{FieldSelector: "metadata.name=" + formerOperator})
	s.add(ctx, "PersistentVolumeClaim", schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, n, metav1.ListOptions{})
	s.add(ctx, "Deployment", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, n, metav1.ListOptions{})
	s.add(ctx, "StatefulSet", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, n, runners)
}

const formerOperator = "vm-operator"

func (s *survey) volumes(ctx context.Context) {
	volumes := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	for i := range slices.Clone(s.found.Objects) {
		o := &s.found.Objects[i]
		if o.GetKind() != "PersistentVolumeClaim" {
			continue
		}
		if name, _, _ := unstructured.NestedString(o.Object, "spec", "volumeName"); name != "" {
			s.addOne(ctx, "PersistentVolume", volumes, "", name)
		}
	}
}

// named reads the existing objects in the place of those to be installed, except secrets.
func (s *survey) named(ctx context.Context, installed []unstructured.Unstructured) {
	seen := map[[3]string]bool{}
	for i := range s.found.Objects {
		o := &s.found.Objects[i]
		seen[[3]string{o.GetKind(), o.GetNamespace(), o.GetName()}] = true
	}
	for i := range installed {
		o := &installed[i]
		if id := [3]string{o.GetKind(), o.GetNamespace(), o.GetName()}; seen[id] || o.GetKind() == "Secret" {
			continue
		}
		resource, ok := installable[o.GetKind()]
		if !ok {
			s.found.Unseen[o.GetKind()] = "vmop-cli does not know what their resource is called"
			continue
		}
		group := o.GroupVersionKind().Group
		s.addOne(ctx, o.GetKind(), schema.GroupVersionResource{Group: group, Version: o.GroupVersionKind().Version, Resource: resource}, o.GetNamespace(), o.GetName())
	}
}

// installable are the resources of the kinds in deploy/, and of those that a user's kustomization
// is likely to add.
var installable = map[string]string{
	"ConfigMap": "configmaps", "CustomResourceDefinition": "customresourcedefinitions", "ClusterRole": "clusterroles",
	"ClusterRoleBinding": "clusterrolebindings", "Deployment": "deployments", "Namespace": "namespaces",
	"NetworkPolicy": "networkpolicies", "PersistentVolumeClaim": "persistentvolumeclaims", "Role": "roles",
	"RoleBinding": "rolebindings", "Service": "services", "ServiceAccount": "serviceaccounts", "PodDisruptionBudget": "poddisruptionbudgets",
	"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
	"LimitRange": "limitranges", "ResourceQuota": "resourcequotas", "PriorityClass": "priorityclasses", "DaemonSet": "daemonsets",
}

func (s *survey) list(ctx context.Context, resource schema.GroupVersionResource, namespace string, o metav1.ListOptions) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	for o.Limit = 500; ; {
		list, err := s.dynamic.Resource(resource).Namespace(namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return out, nil
		}
	}
}

func (s *survey) add(ctx context.Context, kind string, resource schema.GroupVersionResource, namespace string, o metav1.ListOptions) {
	found, err := s.list(ctx, resource, namespace, o)
	switch {
	case apierrors.IsNotFound(err): // the cluster has no such resource
	case err != nil:
		s.found.Unseen[kind] = err.Error()
	}
	s.found.Objects = append(s.found.Objects, found...)
}

func (s *survey) addOne(ctx context.Context, kind string, resource schema.GroupVersionResource, namespace, name string) {
	o, err := s.dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		s.found.Unseen[kind] = err.Error()
	default:
		s.found.Objects = append(s.found.Objects, *o)
	}
}
