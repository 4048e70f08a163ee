package rendering_test

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/rendering"

	"github.com/vmop/sdk/vmop"
)

// What there is not is refused, and what cannot be written leaves nothing behind.
func TestWriteRefuses(t *testing.T) {
	odd := vmop.Rendered{Command: qemucmd.Command{Executable: "qemu", Groups: []qemucmd.Group{{Options: []qemucmd.Option{{Flag: "-append", Head: "a\nb"}}}}}}
	for _, c := range []struct {
		part    rendering.Part
		format  rendering.Format
		problem string
	}{
		{"qmeu", "", `no part "qmeu"`},
		{"", "xml", `no format "xml"`},
		{rendering.Objects, rendering.Shell, "objects has json and yaml"},
		{rendering.QEMU, rendering.Argv, "line feed"},
	} {
		var out strings.Builder
		err := rendering.Write(&out, c.part, c.format, []rendering.Machine{{Name: "a", Rendered: odd}})
		if err == nil || !strings.Contains(err.Error(), c.problem) || out.Len() > 0 {
			t.Errorf("%q %q: %v, after %q", c.part, c.format, err, out.String())
		}
	}
}
