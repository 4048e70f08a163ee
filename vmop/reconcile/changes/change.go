package changes

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmop/sdk/internal/printable"
	"github.com/vmop/sdk/vmop/spec"
)

// Change is one difference between two manifests of one machine, and how it is applied while the
// machine runs.
type Change struct {
	// Operation is add, remove or replace; see [spec.AwaitingChange].
	Operation string `json:"operation"`
	// Path is the changed field, as in spec.vm.disks[1].cdrom.image. Entries of a list are
	// counted from 0; a key of a map is in brackets too, as in
	// metadata.labels[app.kubernetes.io/part-of].
	Path string `json:"path"`
	// OldValue and NewValue are the values as JSON; nil if absent. Their JSON names are those of
	// [spec.AwaitingChange].
	OldValue json.RawMessage `json:"currentValue,omitempty"`
	NewValue json.RawMessage `json:"desiredValue,omitempty"`
	// Applied is when the change takes effect.
	Applied Applied `json:"applied"`
	// Reason explains what Applied alone does not say; often empty.
	Reason string `json:"message,omitempty"`
}

// Awaiting returns the change as in the status of a machine that waits for a restart with it.
func (c *Change) Awaiting() spec.AwaitingChange {
	value := func(raw json.RawMessage) *runtime.RawExtension {
		if raw == nil {
			return nil
		}
		return &runtime.RawExtension{Raw: raw}
	}
	return spec.AwaitingChange{Operation: c.Operation, Path: c.Path, CurrentValue: value(c.OldValue), DesiredValue: value(c.NewValue), Message: c.Reason}
}

// IsDisk reports whether a disk as a whole is added, removed or replaced: an entry of
// spec.vm.disks or of spec.blockDeviceRefs.
func (c *Change) IsDisk() bool {
	for _, list := range []string{"spec.vm.disks[", "spec.blockDeviceRefs["} {
		if rest, ok := strings.CutPrefix(c.Path, list); ok {
			return strings.Index(rest, "]") == len(rest)-1
		}
	}
	return false
}

// Applied is when a change takes effect on a running machine.
type Applied string

// When changes take effect. On a stopped machine, all but [AppliedNever] do at its next start.
const (
	// AppliedLive changes reach the running machine.
	AppliedLive Applied = "live"
	// AppliedRestart changes wait until the machine is started again.
	AppliedRestart Applied = "restart"
	// AppliedNever changes contradict what exists: a volume does not shrink.
	AppliedNever Applied = "never"
)

const maxShown = 100

// String returns the change in one line for users:
//
//	replace spec.vm.currentCpus: 2 -> 4 (live)
//
// Long values are cut, and the documents for cloud-init are not shown, because they often hold
// passwords.
func (c Change) String() string {
	var b strings.Builder
	b.WriteString(c.Operation + " " + printable.Cell(c.Path))
	switch {
	case Confidential(c.Path):
		b.WriteString(": (not shown)")
	case c.OldValue != nil && c.NewValue != nil:
		b.WriteString(": " + shown(c.OldValue) + " -> " + shown(c.NewValue))
	case c.OldValue != nil:
		b.WriteString(": " + shown(c.OldValue))
	case c.NewValue != nil:
		b.WriteString(": " + shown(c.NewValue))
	}
	b.WriteString(" (" + string(c.Applied))
	if c.Reason != "" {
		b.WriteString(": " + c.Reason)
	}
	return b.String() + ")"
}

// Confidential reports whether the value of a field is hidden by default: the documents for
// cloud-init and the like often hold passwords.
func Confidential(path string) bool {
	return strings.HasPrefix(path, "spec.cloudInit") || strings.HasPrefix(path, "spec.provisioning")
}

func shown(v json.RawMessage) string {
	s := []rune(printable.Cell(string(v)))
	if len(s) > maxShown {
		return string(s[:maxShown]) + "…"
	}
	return string(s)
}
