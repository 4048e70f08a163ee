// Package deckhouse translates machines of Deckhouse Virtualization into ours,
// purely.
package deckhouse
