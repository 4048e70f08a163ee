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
	cm := bareConfigMap(vm, &s)
	if err := fillConfigMap(cm, vm, &s, config); err != nil {
		return nil, err
	}
	return cm, nil
}

// bareConfigMap is the ConfigMap without its content.
func bareConfigMap(vm *spec.VirtualMachine, s *Settings) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kindConfigMap},
		ObjectMeta: objectMeta(vm, s),
	}
}

func fillConfigMap(cm *corev1.ConfigMap, vm *spec.VirtualMachine, s *Settings, config runnerconfig.Config) error {
	data, err := runnerconfig.Marshal(config)
	if err != nil {
		return fmt.Errorf("virtual machine %s: %w", vm.Name, err)
	}
	cm.Data = map[string]string{ConfigKey: string(data), LoggingKey: loggingProperties(vm, s)}
	return nil
}

func loggingProperties(vm *spec.VirtualMachine, s *Settings) string {
	logging := vm.Spec.LoggingProperties
	for _, next := range []string{s.LoggingProperties, DefaultLoggingProperties} {
		if logging == "" {
			logging = next
		}
	}
	return logging
}
