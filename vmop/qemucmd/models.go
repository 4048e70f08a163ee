package qemucmd

const (
	agentPort  = "virtserialport"
	cdDrive    = "ide-cd"
	virtioDisk = "virtio-blk-pci"
)

const panicPCI = "pvpanic-pci"
