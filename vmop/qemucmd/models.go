package qemucmd

const (
	agentPort  = "virtserialport"
	cdDrive    = "ide-cd"
	virtioDisk = "virtio-blk-pci"
)

// panicPCI is the one of [limits.PanicDevices] that has a PCI address.
const panicPCI = "pvpanic-pci"
