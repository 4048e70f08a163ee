package deckhouse

import (
	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

// machine is a translation under way.
type machine struct {
	root *tree.Node
	all  []spec.Object
	vm   *spec.VirtualMachine
}
