package runner

import "testing"

// The file of an overlay is known by what QEMU says of it.
func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"/dev/fdset/0": "/dev/fdset/0",
		`json:{"backing": {"driver": "raw", "file": {"driver": "file", "filename": "/dev/fdset/0"}}, "driver": "qcow2", "file": {"driver": "file", "filename": "/m/overlays/0.qcow2"}}`: "/m/overlays/0.qcow2",
		`json:{"driver": "null-co"}`: `json:{"driver": "null-co"}`,
		"json:{":                     "json:{",
	} {
		if got := fileName(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
