package hostprobe

import (
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// Excerpts of what virtiofsd prints, of QEMU 7.2 and of its successor's versions.
func TestWhatVirtioFSDCanDo(t *testing.T) {
	for help, want := range map[string]qemucmd.VirtioFSD{
		"usage: /usr/lib/qemu/virtiofsd [options]\n    -o source=PATH             shared directory tree\n": {Former: true},
		"Usage: virtiofsd --shared-dir <SHARED_DIR> --socket-path <SOCKET_PATH> [OPTIONS]\n":               {},
		"      --shared-dir <SHARED_DIR>\n      --readonly\n":                                              {ReadOnly: true},
	} {
		if got := judgeVirtioFSD([]byte(help)); got != want {
			t.Errorf("%q: %+v, want %+v", help, got, want)
		}
	}
}
