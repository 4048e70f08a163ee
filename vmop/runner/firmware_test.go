package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
)

// A machine has UEFI variables of its own for each firmware. The guest is seen to
// boot with them by [TestSecureBootIsEnforced] and [TestGuestFindsItsMachineAgain].
func TestFirmware(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	for _, tt := range []struct {
		kind qemucmd.FirmwareKind
		vars string
	}{
		{qemucmd.FirmwareUEFI, "fw-vars.fd"},
		{qemucmd.FirmwareSecure, "fw-vars.secure.fd"},
	} {
		t.Run(string(tt.kind), func(t *testing.T) {
			c := testConfig(t)
			c.Runner.VM.Firmware = string(tt.kind)
			r := start(t, c, d)
			r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
			r.cancel()
			r.wait(t)
			if info, err := os.Stat(filepath.Join(d.Data, tt.vars)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("UEFI variables: %v, %v", info, err)
			}
		})
	}
	rec, err := readRecord(d.Data)
	if err != nil || len(rec.Firmware) != 2 {
		t.Errorf("record %+v, %v", rec, err)
	}
}

// Variables that exist, from whatever system, are used as they are.
func TestVariablesAreKept(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	if err := os.MkdirAll(d.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	h := testHost(t)
	vars, err := os.ReadFile(h.Firmware[0].Vars)
	if err != nil {
		t.Fatal(err)
	}
	vars[len(vars)-1] = 'x' // beyond what the firmware uses
	path := filepath.Join(d.Data, "fw-vars.fd")
	if err := os.WriteFile(path, vars, 0o600); err != nil {
		t.Fatal(err)
	}
	c := testConfig(t)
	c.Runner.VM.Firmware = "uefi"
	r := start(t, c, d)
	r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	r.cancel()
	r.wait(t)
	now, err := os.ReadFile(path)
	if err != nil || len(now) != len(vars) || now[len(now)-1] != 'x' {
		t.Errorf("the variables were replaced: %d bytes, %v", len(now), err)
	}
}
