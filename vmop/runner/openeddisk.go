package runner

// openedDisk is the disk of an attachment: an image or a block device that is opened for one QEMU
// only, an exporter's or the machine's own.
type openedDisk struct {
	path string
	// size is the size of the image to create if none ever existed, in bytes; 0 creates none.
	size int64
	// volumes are as in [Options.Volumes].
	volumes []string
	// has is the size of the disk in an image when it was opened, in bytes.
	has     int64
	message func(level Level, format string, args ...any)
}
