// Package deckhouse translates machines of Deckhouse Virtualization and their classes into ours,
// purely.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package deckhouse
