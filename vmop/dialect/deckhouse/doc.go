// Package deckhouse translates machines of Deckhouse Virtualization and their classes into ours,
// purely.
package deckhouse
