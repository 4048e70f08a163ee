package deckhouse

import (
	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

// machine is the translation of a machine in progress.
type machine struct {
	root *tree.Node
	all  []spec.Object
	vm   *spec.VirtualMachine
}
