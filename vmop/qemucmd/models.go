package qemucmd

// The devices that more than one kind has.
const (
	agentPort  = "virtserialport"
	cdDrive    = "ide-cd"
	virtioDisk = "virtio-blk-pci"
)
