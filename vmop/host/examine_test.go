package host

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/hostprobe"
	"github.com/vmop/sdk/vmop/qemucmd"
)

// Whatever a host has: each subject is judged once, what is not in order says what
// helps, and only what keeps all machines from starting is broken.
func TestDiagnose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maybe := func(what, value string) string {
			if rapid.Bool().Draw(t, what) {
				return value
			}
			return ""
		}
		s := surroundings{
			dataDir: "/data", data: maybe("no data directory", "/: read-only file system"),
			runtimeDir: "/run/vmop", runtime: maybe("no runtime directory", "/run: permission denied"),
			tooLong: maybe("long runtime directory", "/run/long has 100 bytes"),
			free:    rapid.Uint64().Draw(t, "free"), memory: rapid.Uint64().Draw(t, "memory"),
			mayBridge: rapid.Bool().Draw(t, "may bridge"),
		}
		if rapid.Bool().Draw(t, "bridge") {
			s.bridges = []string{"br0"}
		}
		if rapid.Bool().Draw(t, "no QEMU") {
			s.probeErr = &hostprobe.NotFoundError{Searched: []string{"PATH"}}
		} else {
			s.probed.Host = qemucmd.Host{
				QEMU: "/usr/bin/qemu-system-x86_64", KVM: rapid.Bool().Draw(t, "KVM"),
				SWTPM: maybe("swtpm", "/usr/bin/swtpm"), BridgeHelper: maybe("helper", "/usr/lib/qemu/qemu-bridge-helper"),
				SPICE: rapid.Bool().Draw(t, "SPICE"), VNC: rapid.Bool().Draw(t, "VNC"),
				Firmware: rapid.SampledFrom([][]qemucmd.FirmwareImage{nil, {{}}, {{Secure: true}}}).Draw(t, "firmware"),
			}
			if !s.probed.Host.KVM {
				s.probed.Notes = []string{"KVM: there is no /dev/kvm"}
			}
		}
		seen := map[string]bool{}
		broken := false
		for _, f := range diagnose(&s) {
			if seen[f.Subject] {
				t.Errorf("%s: twice", f.Subject)
			}
			seen[f.Subject] = true
			if (f.Status == FindingOK) != (f.Do == "") {
				t.Errorf("%+v: what is in order needs nothing, and all else something", f)
			}
			if f.Found == "" || strings.Contains(f.Found, "%!") {
				t.Errorf("%+v", f)
			}
			broken = broken || f.Status == FindingBroken
		}
		if want := s.probeErr != nil || s.data != "" || s.runtime != "" || s.tooLong != ""; broken != want {
			t.Errorf("broken: %v, want %v", broken, want)
		}
	})
}

// The host of the tests has what they need.
func TestExamine(t *testing.T) {
	h := testHost(t)
	findings, err := h.Examine(t.Context(), hostprobe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Logf("%+v", f)
		if f.Status == FindingBroken {
			t.Errorf("%+v: install what is missing with: make deps", f)
		}
	}
}
