package changes

import (
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/spec"
)

type differ struct {
	old, new *spec.VirtualMachine
	options  Options
	changes  []Change
	// devices are the positions in changes of disks that are plugged or unplugged if nothing else
	// waits for a restart.
	devices []int
	// coming are the disks that are plugged, or may be.
	coming []coming
	// places are, for removed entries by their positions in changes, the paths that they would
	// have without plugged disks.
	places map[int]string
}

// location is a place in both manifests. It is formatted only for a difference, so that comparing
// equal machines costs next to nothing.
type location struct {
	parent *location
	kind   locationKind
	name   string // of a field, or a key of a map
	index  int    // in a list: the new one, if it exists
	was    int    // in the old list
}

type locationKind int

const (
	inStruct locationKind = iota
	inMap
	inList
)

// path returns the JSON path, as field.Path of apimachinery writes it.
func (l *location) path() string {
	var b strings.Builder
	l.write(&b, false)
	return b.String()
}

// pattern returns the path without positions and keys, the key of [rules].
func (l *location) pattern() string {
	var b strings.Builder
	l.write(&b, true)
	return b.String()
}

func (l *location) write(b *strings.Builder, pattern bool) {
	if l.parent != nil {
		l.parent.write(b, pattern)
	}
	switch {
	case l.kind == inStruct && l.parent == nil:
		b.WriteString(l.name)
	case l.kind == inStruct:
		b.WriteString("." + l.name)
	case pattern:
		b.WriteString("[]")
	case l.kind == inMap:
		b.WriteString("[" + l.name + "]")
	default:
		b.WriteString("[" + strconv.Itoa(l.index) + "]")
	}
}

func isOrContains(outer, inner string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
