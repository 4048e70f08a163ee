package machinetest

import (
	"encoding/json"
	"reflect"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// invalidDocument has a duplicate key, which only a parser detects.
const invalidDocument = `{"runcmd": [], "runcmd": ["reboot"]}`

// someDocuments are empty, the same in two notations, different, or invalid.
var someDocuments = []string{"", `{}`, `{"runcmd":["a"]}`, `{ "runcmd" : ["a"] }`, `{"runcmd":["b"]}`, invalidDocument}

func documentOf(text string) *runtime.RawExtension {
	if text == "" {
		return nil
	}
	return &runtime.RawExtension{Raw: []byte(text)}
}

func (w *world) writer() {
	vm := get[*spec.VirtualMachine](w, theVM)
	if vm == nil {
		return
	}
	some := func() *runtime.RawExtension {
		return documentOf(someDocuments[w.choose("document", len(someDocuments))])
	}
	switch w.choose("writer", 5) {
	case 0, 1:
		vm.Spec.CloudInit.UserData = some()
	case 2:
		vm.Spec.CloudInit.NetworkConfig = some()
	case 3:
		vm.Spec.LoggingProperties = []string{"", "a=b"}[w.choose("logging", 2)]
	case 4:
		if vm.Spec.VM.State == spec.StateRunning {
			vm.Spec.VM.State = spec.StateStopped
		} else {
			vm.Spec.VM.State = spec.StateRunning
		}
		w.decisions++
	}
	// An API server counts generations; manifests in files have none.
	if w.choose("numbered", 3) > 0 {
		vm.Generation++
	}
	w.put(theVM, vm)
	w.note("the machine is %s, with %v", vm.Spec.VM.State, *vm.Spec.CloudInit)
}

// forger changes the ConfigMap, as a user with the right to, or an operator of another version.
func (w *world) forger() {
	cm := get[*corev1.ConfigMap](w, theConfig)
	if cm == nil || cm.Annotations == nil {
		return
	}
	if note := cm.Annotations[names.AnnotationDocuments]; note != "" {
		w.notes = append(w.notes, note)
	}
	switch w.choose("forger", 5) {
	case 0:
		delete(cm.Annotations, names.AnnotationDocuments)
	case 1:
		cm.Annotations[names.AnnotationDocuments] = []string{"", ".", "x.y", cm.Annotations[names.AnnotationApplied] + "."}[w.choose("forged", 4)]
	case 2:
		if len(w.notes) > 0 {
			cm.Annotations[names.AnnotationDocuments] = w.notes[w.choose("noted", len(w.notes))]
		}
	case 3:
		cm.Annotations[names.AnnotationApplied] = []string{"", "x"}[w.choose("applied", 2)]
	case 4:
		cm.Data[names.ConfigKey] = "\"/Runner\":\n  vm:\n    name: web\n"
	}
	w.put(theConfig, cm)
	w.note("somebody writes the ConfigMap: %v", cm.Annotations)
}

// checkDocuments verifies that an invalid document is reported and not used, and that an operator
// that writes nothing, or creates a pod, has observed a ConfigMap with the manifest's documents.
func (w *world) checkDocuments(s *machine.Snapshot, p *reconcile.Plan) {
	if !w.written || s.VM.DeletionTimestamp != nil {
		return
	}
	c := s.VM.Spec.CloudInit
	for _, document := range []*runtime.RawExtension{c.UserData, c.NetworkConfig} {
		if document == nil || string(document.Raw) != invalidDocument {
			continue
		}
		vm := s.VM.DeepCopy()
		for _, st := range p.Statuses {
			if st.Manager == names.OperatorStatusManager {
				vm.Status = w.statusOf(st.Status)
			}
		}
		told := spec.FindCondition(vm.Status.Conditions, spec.ConditionConfigurationApplied)
		if told == nil || told.Reason != spec.ReasonInvalidSpecification || p.StartsPod() {
			w.violated("an invalid document is told", "%s: %+v, %+v", document.Raw, told, p.Actions)
		}
		return
	}
	if !p.StartsPod() && len(p.Actions)+len(s.Failures) > 0 {
		return
	}
	config := &runnerconfig.CloudInit{}
	if cm := s.ConfigMap; cm != nil {
		if parsed, _, err := runnerconfig.Parse([]byte(cm.Data[names.ConfigKey])); err == nil && parsed.Runner.CloudInit != nil {
			config = parsed.Runner.CloudInit
		}
	}
	user := c.UserData
	if user == nil {
		user = documentOf("{}")
	}
	if !sameDocument(config.UserData, user) || !sameDocument(config.NetworkConfig, c.NetworkConfig) {
		w.violated("a configuration has the documents of its manifest", "%s and %s instead of %v and %v", config.UserData, config.NetworkConfig, c.UserData, c.NetworkConfig)
	}
}

func sameDocument(got json.RawMessage, want *runtime.RawExtension) bool {
	if len(got) == 0 || want == nil {
		return len(got) == 0 && want == nil
	}
	var x, y any
	return json.Unmarshal(got, &x) == nil && json.Unmarshal(want.Raw, &y) == nil && reflect.DeepEqual(x, y)
}
