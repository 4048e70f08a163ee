package runner

// openedDisk is an image or block device that one QEMU has open, an exporter's or the machine's
// own.
type openedDisk struct {
	path string
	// size is the size of the image to create if none ever existed, in bytes; 0 creates none.
	size    int64
	volumes []string
	// has is the size of the disk in an image when it was opened, in bytes.
	has     int64
	message func(level Level, format string, args ...any)
}
