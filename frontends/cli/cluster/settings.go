package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmop/sdk/vmop/operatorconfig"
)

// formerConfig is the ConfigMap with VM-Operator's configuration, in the namespace
// of its machines.
const formerConfig = "vm-operator"

// Console is what VM-Operator's configuration says about consoles, where it is to
// be read; users need no right to it, and whoever has none gets the defaults.
func (c *Client) Console(ctx context.Context, namespace string) operatorconfig.Console {
	o, err := c.dynamic.Resource(configs).Namespace(namespace).Get(ctx, formerConfig, metav1.GetOptions{})
	if err != nil {
		return operatorconfig.Console{}
	}
	text, _, err := unstructured.NestedString(o.Object, "data", "config.yaml")
	if err != nil {
		return operatorconfig.Console{}
	}
	// What is wrong in it is the operator's to tell.
	config, _, err := operatorconfig.Parse(formerConfig, []byte(text))
	if err != nil {
		return operatorconfig.Console{}
	}
	return config.Console
}
