package cluster

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A number that its field cannot hold must not become another one.
func TestDecodeRefusesWhatTheTypesCannotHold(t *testing.T) {
	for _, cpus := range []any{"many", int64(1<<32 + 2)} {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"vm": map[string]any{"maximumCpus": cpus}}}}
		o.SetNamespace("shop")
		o.SetName("web")
		if vm, err := decode(o); err == nil || !strings.Contains(err.Error(), "shop/web") {
			t.Errorf("%v: got %v, %v", cpus, vm, err)
		}
	}
}
