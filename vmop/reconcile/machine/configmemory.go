package machine

import (
	"strconv"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/runnerconfig"
	corev1 "k8s.io/api/core/v1"
)

// configMemory is what is stored in the ConfigMap and nowhere else.
type configMemory struct {
	resets     int64
	request    string // the last one that was counted
	instanceID string
	generation int64 // of the specification it is made from
	resetEnds  bool  // a reset by the guest ends the machine
	// dataOwner is the user who was given the files of VM-Operator's runner.
	dataOwner string
}

// remembered reads the memory and counts a new request for a reset.
//
// Counter and request are written together and only over the version that was read, so each
// request is counted exactly once. A request older than the ConfigMap is ignored.
func (d *decision) remembered() configMemory {
	request := d.s.VM.Annotations[names.AnnotationResetRequest]
	old := d.s.ConfigMap
	if old == nil {
		return configMemory{request: request}
	}
	m := configMemory{
		request: old.Annotations[names.AnnotationResetRequest], instanceID: old.Annotations[names.AnnotationInstanceID],
		resetEnds: old.Annotations[names.AnnotationGuestResetEnds] != "",
		dataOwner: old.Annotations[names.AnnotationDataOwner],
	}
	m.generation, _ = strconv.ParseInt(old.Annotations[names.AnnotationGeneration], 10, 64)
	if resets, err := resetCounter(old); err == nil {
		m.resets = resets
	} else if d.owned(old) {
		m = fromVMOperator(old, request)
	} else {
		m = configMemory{request: request} // the label may be forged; it is not read
	}
	if request != "" && request != m.request {
		m.resets, m.request = m.resets+1, request
	}
	if owner := d.pod.givenTo(); owner != "" {
		m.dataOwner = owner
	}
	return m
}

// content returns a digest of a ConfigMap's content, which shows whether another client has
// changed it without writing the YAML again.
func content(data map[string]string) string {
	if digest, ok := data[condensedContent]; ok {
		return digest
	}
	config, logging := data[names.ConfigKey], data[names.LoggingKey]
	all := make([]byte, 0, len(config)+len(logging)+2)
	all = append(append(all, config...), 0)
	all = append(append(all, logging...), 0)
	return digest(all)
}

func resetCounter(cm *corev1.ConfigMap) (int64, error) {
	return strconv.ParseInt(cm.Annotations[names.AnnotationResetCounter], 10, 64)
}

// fromVMOperator reads the memory from a ConfigMap that VM-Operator wrote. It knows no requests:
// an existing one was not made to it.
func fromVMOperator(old *corev1.ConfigMap, request string) configMemory {
	m := configMemory{request: request}
	c, _, err := runnerconfig.Parse([]byte(old.Data[names.ConfigKey]))
	if err != nil {
		return m
	}
	if n := c.Runner.ResetCounter; n != nil {
		m.resets = *n
	}
	if c.Runner.CloudInit != nil {
		m.instanceID = c.Runner.CloudInit.MetaData[manifest.InstanceIDKey]
	}
	return m
}

func (m configMemory) keep(cm *corev1.ConfigMap) {
	cm.Annotations[names.AnnotationResetCounter] = strconv.FormatInt(m.resets, 10)
	cm.Annotations[names.AnnotationGeneration] = strconv.FormatInt(m.generation, 10)
	if m.resetEnds {
		cm.Annotations[names.AnnotationGuestResetEnds] = strconv.FormatBool(true)
	}
	if m.request != "" {
		cm.Annotations[names.AnnotationResetRequest] = m.request
	}
	if m.dataOwner != "" {
		cm.Annotations[names.AnnotationDataOwner] = m.dataOwner
	}
	if m.instanceID != "" {
		cm.Annotations[names.AnnotationInstanceID] = m.instanceID
	}
}

// condensedContent is the key of the digest in a condensed ConfigMap. It is not a valid key for
// the API server.
const condensedContent = "/content"
