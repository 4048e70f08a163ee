package spec

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// +kubebuilder:object:generate=false

// Object is one object of a file, and where its fields were written.
type Object struct {
	// Typed is the object, if it is of one of the [Kinds].
	Typed TypedObject
	// VirtualMachine is set if the object is one.
	VirtualMachine *VirtualMachine
	// VmPool is set if the object is one.
	VmPool *VmPool

	// APIVersion, Kind, Namespace and Name are those of the object, also if
	// it is of a kind that this package does not know.
	APIVersion, Kind, Namespace, Name string

	// File is the name that was given to [Load].
	File string
	// Line is the line of the object's first field.
	Line int
	// Raw is the text of the object as it was written: the whole YAML
	// document with its comments, or JSON. Items of a list come as JSON.
	Raw []byte
	// Warnings are the unknown fields, if they were to be tolerated, and what else
	// keeps no machine from starting.
	Warnings []Problem

	root *node
}

// Position gives the place of a field, as "file:line". The path is that of a
// problem or of a field.Error, such as spec.vm.disks[2].cdrom.image. A field
// that was not written has the place of the nearest one around it.
func (o *Object) Position(path string) string {
	return fmt.Sprintf("%s:%d", o.File, o.lineOf(path))
}

// lineOf gives the line of a field, see [Object.Position].
func (o *Object) lineOf(path string) int {
	if o.root == nil {
		return o.Line
	}
	line, _ := o.root.find(path)
	return line
}

// Written reports whether the field at the path stands in the file, as opposed
// to being absent or a default.
func (o *Object) Written(path string) bool {
	if o.root == nil {
		return false
	}
	_, found := o.root.find(path)
	return found
}

// Problem makes a problem of a field of the object.
func (o *Object) Problem(path, message string) Problem {
	return Problem{
		File: o.File, Line: o.lineOf(path),
		Kind: o.Kind, Namespace: o.Namespace, Name: o.Name,
		Path: path, Message: message,
	}
}

// Problems gives the findings of a validation their places in the file.
func (o *Object) Problems(errs field.ErrorList) []Problem {
	out := make([]Problem, 0, len(errs))
	for _, e := range errs {
		out = append(out, o.Problem(e.Field, e.ErrorBody()))
	}
	return out
}

// parentOf divides the path of a field, or of an item of a list, whose name is empty.
func parentOf(path string) (parent, name string) {
	i := max(strings.LastIndexAny(path, ".["), 0)
	parent, name = path[:i], strings.TrimPrefix(path[i:], ".")
	if strings.HasPrefix(name, "[") {
		name = ""
	}
	return parent, name
}

// TypedObject is an object of one of the [Kinds].
//
// +kubebuilder:object:generate=false
type TypedObject interface {
	runtime.Object
	metav1.Object
}
