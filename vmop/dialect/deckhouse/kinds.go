package deckhouse

// Group is Deckhouse Virtualization's API group.
const Group = "virtualization.deckhouse.io"

const (
	kindMachine      = "VirtualMachine"
	kindDisk         = "VirtualDisk"
	kindImage        = "VirtualImage"
	kindClusterImage = "ClusterVirtualImage"
)

// Kinds lists the kinds that [Translate] accepts, each followed by its group.
func Kinds() []string { return []string{kindMachine + "." + Group} }

func unread(string) string { return "has no counterpart and is left out" }
