package qemucmd_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// A template that makes long texts of short ones ends with an error, before it has taken
// much memory.
func TestTemplatesThatGrow(t *testing.T) {
	m := qemucmd.Machine{Name: "web", UUID: "0d6ec0a5-5f0c-4b1e-9a51-3b3a3d0b5a10", Monitor: qemucmd.Socket{Path: "/run/qmp.sock"}}
	m.Firmware.Kind = qemucmd.FirmwareBIOS
	m.Memory.Size = 1 << 30
	for name, source := range map[string]string{
		"doubled":         `{{$s := "xxxxxxxx"}}{{range 60}}{{$s = print $s $s}}{{end}}{{standard}}`,
		"by a format":     `{{$s := "xxxxxxxx"}}{{range 60}}{{$s = printf "%s%s" $s $s}}{{end}}{{standard}}`,
		"escaped":         `{{$s := "<<<<<<<<"}}{{range 60}}{{$s = html $s $s}}{{end}}{{standard}}`,
		"quoted":          `{{$s := "'''"}}{{range 60}}{{$s = js $s}}{{end}}{{standard}}`,
		"a wide number":   `{{range 1000000}}{{$s := printf "%999999d" 1}}{{end}}{{standard}}`,
		"a given width":   `{{range 1000000}}{{$s := printf "%*d" 999999 1}}{{end}}{{standard}}`,
		"again and again": `{{$s := "xxxxxxxx"}}{{range 18}}{{$s = print $s $s}}{{end}}{{range 1000000}}{{$t := print $s}}{{end}}{{standard}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := qemucmd.BuildTemplate(m, qemucmd.GenericHost(), source)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "bytes") {
				t.Errorf("got %v", err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 512<<20 {
				t.Errorf("it took %d MiB", took>>20)
			}
		})
	}
}
