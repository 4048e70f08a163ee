package deckhouse

import (
	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/spec"
)

type machine struct {
	root *tree.Node
	all  []spec.Object
	vm   *spec.VirtualMachine
}
