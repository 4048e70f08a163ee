package imageinspect

import (
	"errors"
	"fmt"
)

// maxWork bounds the bytes that are read of an image; a small read counts as minWork. It is a
// hundred times what valid images need. Limits on each table alone would still allow a thousand
// partitions with a thousand links each.
const (
	maxWork = 256 << 20
	minWork = 512
)

var errTooMuch = errors.New("there is too much in it, the rest is not examined")

const (
	// maxDocument is the maximum size of a seed's document, in bytes.
	maxDocument = 1 << 20
	// maxDirectory is how much of a root directory is read, in bytes.
	maxDirectory = 1 << 20
)

var (
	errTooLarge = fmt.Errorf("larger than %d bytes: not shown", maxDocument)
	errDamaged  = errors.New("the file system is damaged")
)

var errNotExamined = errors.New("contents not examined")
