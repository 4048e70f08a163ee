package objects

import (
	"fmt"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BareConfigMap returns the ConfigMap for the runner's configuration and its logging.properties,
// without its content.
func BareConfigMap(vm *spec.VirtualMachine, s *Settings) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: names.KindConfigMap},
		ObjectMeta: objectMeta(vm, s),
	}
	if s.Operator != "" {
		cm.Annotations[names.AnnotationOperator] = s.Operator
	}
	return cm
}

// FillConfigMap sets the content of the ConfigMap. The manifest's logging.properties take
// precedence over the operator's.
func FillConfigMap(cm *corev1.ConfigMap, vm *spec.VirtualMachine, s *Settings, config runnerconfig.Config) error {
	data, err := runnerconfig.Marshal(config)
	if err != nil {
		return fmt.Errorf("%s: %w", vm.Title(), err)
	}
	cm.Data = map[string]string{names.ConfigKey: string(data), names.LoggingKey: LoggingProperties(vm, s)}
	return nil
}

// LoggingProperties returns the content of logging.properties.
func LoggingProperties(vm *spec.VirtualMachine, s *Settings) string {
	logging := vm.Spec.LoggingProperties
	for _, next := range []string{s.LoggingProperties, defaultLoggingProperties} {
		if logging == "" {
			logging = next
		}
	}
	return logging
}
