package imageinspect

import (
	"errors"
)

// The reasons for which [ProbeFormat] refuses an image, for errors.Is.
var (
	// ErrUnsupportedFormat: an image format that is neither raw nor qcow2.
	ErrUnsupportedFormat = errors.New("unsupported image format")
	// ErrBackingFile: the qcow2 image continues in another file that it names.
	ErrBackingFile = errors.New("qcow2 image has a backing file")
	// ErrDataFile: the qcow2 image keeps its data in another file that it names.
	ErrDataFile = errors.New("qcow2 image has an external data file")
	// ErrEncrypted: the qcow2 image is encrypted.
	ErrEncrypted = errors.New("qcow2 image is encrypted")
	// ErrIncompatibleFeatures: the qcow2 image is marked as corrupt or needs a feature that this
	// package does not know to be harmless.
	ErrIncompatibleFeatures = errors.New("qcow2 image has unsupported incompatible features")
	// ErrInvalidHeader: the header contradicts itself, the file's size or the format's
	// specification.
	ErrInvalidHeader = errors.New("invalid image header")
)
