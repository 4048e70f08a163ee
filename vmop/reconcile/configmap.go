package reconcile

import (
	"fmt"

	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigMap holds the runner's configuration and its logging.properties, of
// which the manifest's takes precedence over the operator's.
func ConfigMap(vm *spec.VirtualMachine, s Settings, config runnerconfig.Config) (*corev1.ConfigMap, error) {
	data, err := runnerconfig.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("virtual machine %s: %w", vm.Name, err)
	}
	logging := vm.Spec.LoggingProperties
	for _, next := range []string{s.LoggingProperties, DefaultLoggingProperties} {
		if logging == "" {
			logging = next
		}
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: objectMeta(vm, &s),
		Data:       map[string]string{ConfigKey: string(data), LoggingKey: logging},
	}, nil
}
