package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmop/sdk/vmop/operatorconfig"
)

// formerConfig is the ConfigMap with VM-Operator's configuration, in the namespace of its machines.
const formerConfig = "vm-operator"

// Console returns what VM-Operator's configuration says about consoles, or the defaults if the user
// may not read it.
func (c *Client) Console(ctx context.Context, namespace string) operatorconfig.Console {
	o, err := c.dynamic.Resource(configs).Namespace(namespace).Get(ctx, formerConfig, metav1.GetOptions{})
	if err != nil {
		return operatorconfig.Console{}
	}
	text, _, err := unstructured.NestedString(o.Object, "data", "config.yaml")
	if err != nil {
		return operatorconfig.Console{}
	}
	// The operator reports errors in it.
	config, _, err := operatorconfig.Parse(formerConfig, []byte(text))
	if err != nil {
		return operatorconfig.Console{}
	}
	return config.Console
}
