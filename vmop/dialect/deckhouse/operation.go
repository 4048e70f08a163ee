package deckhouse

import (
	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

// OperationKind is the kind that [TranslateOperation] accepts, with its group.
const OperationKind = kindOperation + "." + Group

const kindOperation = "VirtualMachineOperation"

// TranslateOperation translates an operation, and returns notes on what of it has no counterpart.
// The result is nil for an operation of an unsupported type; the notes then contain the reason.
func TranslateOperation(o *spec.Object) (*spec.VirtualMachineOperation, []spec.Problem, error) {
	root, err := tree.New(o)
	if err != nil {
		return nil, nil, err
	}
	meta, s := root.Get("metadata"), root.Get("spec")
	out := spec.NewOperation(meta.Get("namespace").String(), s.Get("virtualMachineName").String(), spec.OperationType(s.Get("type").String()))
	out.Name, out.GenerateName = meta.Get("name").String(), meta.Get("generateName").String()
	out.Labels, out.Annotations = meta.Get("labels").Strings(), meta.Get("annotations").Strings()
	for _, name := range []string{"apiVersion", "kind", "status"} {
		root.Get(name).ReadAll()
	}
	for _, name := range tree.ServerMade {
		meta.Get(name).ReadAll()
	}
	switch out.Spec.Type {
	case spec.OperationStart, spec.OperationStop, spec.OperationRestart:
	case "":
		return nil, nil, &tree.FieldError{Path: "spec.type", Message: "is required; it says what is done: Start, Stop or Restart"}
	default:
		message := "the operation is left out: Start, Stop and Restart are carried out here, and " + string(out.Spec.Type) + " is not"
		return nil, []spec.Problem{o.Problem("spec.type", message)}, nil
	}
	if out.Spec.VirtualMachineName == "" {
		return nil, nil, &tree.FieldError{Path: "spec.virtualMachineName", Message: "is required; it names the machine that the operation is about"}
	}
	if force, _ := s.Get("force").Bool(); force && out.Spec.Type == spec.OperationStart {
		s.Get("force").Note("nothing is forced by a start, and it is left out")
	} else {
		out.Spec.Force = force
	}
	return out, root.Notes(unread), nil
}
