package imageinspect

import (
	"errors"
	"fmt"
)

// maxWork is how many bytes of an image are read at most; a small read counts
// as minWork. It is a hundred times of what sound images need: limits on each
// table alone would still allow a thousand partitions with a thousand links each.
const (
	maxWork = 256 << 20
	minWork = 512
)

var errTooMuch = errors.New("there is too much in it, the rest is not examined")

const (
	// maxDocument is the size in bytes up to which a document of a seed is shown.
	maxDocument = 1 << 20
	// maxDirectory is the size in bytes up to which a root directory is read.
	maxDirectory = 1 << 20
)

var (
	errTooLarge = fmt.Errorf("larger than %d bytes: not shown", maxDocument)
	errDamaged  = errors.New("the file system is damaged")
)

// errNotExamined means that the contents of a qcow2 image were not read.
var errNotExamined = errors.New("contents not examined")
