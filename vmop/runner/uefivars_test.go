package runner

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"pgregory.net/rapid"
)

// template reads a distribution's UEFI variables.
func template(t testing.TB, name string) []byte {
	t.Helper()
	testHost(t)
	data, err := os.ReadFile(filepath.Join("/usr/share/OVMF", name))
	if err != nil {
		t.Fatalf("%v: install it with: make deps", err)
	}
	return data
}

func TestUEFIVars(t *testing.T) {
	for name, want := range map[string]uefiVars{
		"OVMF_VARS_4M.fd":          {fourMiB: true},
		"OVMF_VARS_4M.ms.fd":       {fourMiB: true, enrolled: true},
		"OVMF_VARS_4M.snakeoil.fd": {fourMiB: true, enrolled: true},
		"OVMF_VARS.fd":             {},
		"OVMF_VARS.ms.fd":          {enrolled: true},
	} {
		data := template(t, name)
		got, err := parseUEFIVars(data)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		// The firmware was stopped while it rewrote the first half.
		half := len(data) / 2
		torn := slices.Concat(make([]byte, half), data[:half])
		got, err = parseUEFIVars(torn)
		if err != nil || got != want {
			t.Errorf("%s, half rewritten: %+v, %v", name, got, err)
		}
	}
	good := template(t, "OVMF_VARS_4M.ms.fd")
	for name, bad := range map[string]struct {
		data []byte
		want string
	}{
		"empty":       {nil, "the file is empty"},
		"cut short":   {good[:4096], "it has 4096 bytes of 540672"},
		"with more":   {append(slices.Clone(good), 0), "it has 540673 bytes of 540672"},
		"zeros":       {make([]byte, len(good)), "does not hold UEFI variables"},
		"text":        {[]byte("hello"), "does not hold UEFI variables"},
		"code (W27)":  {template(t, "OVMF_CODE_4M.secboot.fd"), "does not hold UEFI variables"},
		"other start": {good[16:], "does not hold UEFI variables"},
	} {
		if _, err := parseUEFIVars(bad.data); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A variable that says it is longer than the file is not read.
func TestUEFIVarsWithAHugeVariable(t *testing.T) {
	good := template(t, "OVMF_VARS.ms.fd")
	at := bytes.Index(good, slices.Concat(guidGlobal, []byte("P\x00K\x00\x00\x00")))
	if at < 0 {
		t.Fatal("no platform key")
	}
	for _, field := range []int{at - 8, at - 4} { // the name's size and the data's
		data := slices.Clone(good)
		binary.LittleEndian.PutUint32(data[field:], 0xfffffff0)
		if got, err := parseUEFIVars(data); err != nil || got.enrolled {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// No content makes the parser fail in another way than with an error.
func TestUEFIVarsOfAnyContent(t *testing.T) {
	good := template(t, "OVMF_VARS.ms.fd")
	rapid.Check(t, func(t *rapid.T) {
		data := slices.Clone(good[:rapid.SampledFrom([]int{len(good), 4096, 200, 72}).Draw(t, "length")])
		binary.LittleEndian.PutUint64(data[32:], uint64(len(data)))
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, min(len(data), 600)-1).Draw(t, "at")
			data[at] = rapid.Byte().Draw(t, "byte")
		}
		_, _ = parseUEFIVars(data)
	})
}

func TestTemplatesAreChecked(t *testing.T) {
	testHost(t)
	const dir = "/usr/share/OVMF/"
	for _, tt := range []struct {
		template, code string
		secure         bool
		want           string // "" is no error
	}{
		{"OVMF_VARS_4M.ms.fd", "OVMF_CODE_4M.ms.fd", true, ""},
		{"OVMF_VARS.fd", "OVMF_CODE.fd", false, ""},
		{"OVMF_VARS_4M.fd", "OVMF_CODE_4M.ms.fd", true, "no platform key"},
		{"OVMF_VARS.fd", "OVMF_CODE_4M.fd", false, "different flash layouts"},
		{"OVMF_CODE_4M.secboot.fd", "OVMF_CODE_4M.secboot.fd", true, "cannot be a machine's UEFI variables"},
		{"nothing", "OVMF_CODE_4M.fd", false, "no such file"},
	} {
		err := checkTemplate(dir+tt.template, dir+tt.code, tt.secure)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s for %s: %v; want %q", tt.template, tt.code, err, tt.want)
		}
	}
}

// TestFirmwareDecision follows a data directory through starts with changing
// kinds of firmware and changing hosts.
func TestFirmwareDecision(t *testing.T) {
	var all []qemucmd.FirmwareImage
	for _, secure := range []bool{false, true} {
		for _, fourMiB := range []bool{false, true} {
			code := "code"
			if secure {
				code += ".secure"
			}
			if fourMiB {
				code += ".4m"
			}
			all = append(all, qemucmd.FirmwareImage{Secure: secure, FourMiB: fourMiB, Code: code, Vars: code + ".vars"})
		}
	}
	image := func(code string) qemucmd.FirmwareImage {
		return all[slices.IndexFunc(all, func(i qemucmd.FirmwareImage) bool { return i.Code == code })]
	}
	rapid.Check(t, func(t *rapid.T) {
		recorded := map[qemucmd.FirmwareKind]firmwareRecord{}
		files := map[string]varsFile{}
		if rapid.Bool().Draw(t, "taken over") {
			files[runnerconfig.FirmwareVars] = varsFile{uefiVars: uefiVars{fourMiB: rapid.Bool().Draw(t, "4M"), enrolled: rapid.Bool().Draw(t, "enrolled")}}
		}
		used := map[qemucmd.FirmwareKind]string{}
		for range rapid.IntRange(1, 8).Draw(t, "starts") {
			f := firmwareFacts{
				kind: rapid.SampledFrom(firmwareKinds).Draw(t, "kind"), recorded: recorded, files: files,
				images: rapid.Permutation(all).Draw(t, "images")[rapid.IntRange(0, len(all)-1).Draw(t, "missing"):],
				codes:  map[string]bool{},
			}
			for _, i := range f.images {
				f.codes[i.Code] = i.FourMiB
			}
			c, err := decideFirmware(f)
			file, exists := files[c.vars]
			if err != nil {
				if slices.ContainsFunc(f.images, func(i qemucmd.FirmwareImage) bool {
					return exists && i.FourMiB == file.fourMiB && i.Secure == isSecure(f.kind)
				}) {
					t.Fatalf("%s: %v, though the host has what is needed", f.kind, err)
				}
				continue
			}
			if name, before := used[f.kind]; before && name != c.vars {
				t.Fatalf("%s had its variables in %s, and now in %s", f.kind, name, c.vars)
			}
			code := c.code
			if !exists {
				if code != "" {
					t.Fatalf("code %s for variables that are to be made", code)
				}
				i := slices.IndexFunc(f.images, func(i qemucmd.FirmwareImage) bool {
					return i.Secure == isSecure(f.kind) && (i.FourMiB || !needsFourMiB(f.kind))
				})
				if i < 0 {
					continue // Build says so
				}
				code = f.images[i].Code
				files[c.vars] = varsFile{uefiVars: uefiVars{fourMiB: f.images[i].FourMiB, enrolled: f.images[i].Secure}}
			}
			now := image(code)
			if now.Secure != isSecure(f.kind) || now.FourMiB != files[c.vars].fourMiB || needsFourMiB(f.kind) && !now.FourMiB {
				t.Fatalf("%s: code %+v for %+v", f.kind, now, files[c.vars])
			}
			if isSecure(f.kind) && !files[c.vars].enrolled && !strings.Contains(c.warning, "enforces nothing") {
				t.Fatalf("Secure Boot without keys is not told: %q", c.warning)
			}
			used[f.kind] = c.vars
			recorded[f.kind] = firmwareRecord{Code: code, Vars: c.vars}
		}
	})
}

// Files that hold no variables are refused and stay as they are.
func TestBrokenVarsAreRefused(t *testing.T) {
	t.Parallel()
	good := template(t, "OVMF_VARS_4M.fd")
	for name, content := range map[string][]byte{"empty": {}, "cut short": good[:1000], "zeros": make([]byte, len(good))} {
		t.Run(name, func(t *testing.T) {
			d := testDirs(t)
			path := filepath.Join(d.Data, "fw-vars.fd")
			if err := os.MkdirAll(d.Data, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			c := testConfig(t)
			c.Runner.VM.Firmware = "uefi"
			o, err := start(t, c, d).wait(t)
			if err == nil || o.Cause != CauseStartFailure || !strings.Contains(o.Message, "UEFI variables fw-vars.fd") || !strings.Contains(o.Message, "put back a copy") {
				t.Errorf("outcome %+v, %v", o, err)
			}
			if now, err := os.ReadFile(path); err != nil || !slices.Equal(now, content) {
				t.Errorf("the file was changed: %d bytes, %v", len(now), err)
			}
			nothingLeft(t, d)
		})
	}
}

// Secure Boot with variables that have no keys starts, and says what it is worth.
func TestUnenrolledVars(t *testing.T) {
	t.Parallel()
	d := testDirs(t)
	if err := os.MkdirAll(d.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Data, "fw-vars.fd"), template(t, "OVMF_VARS_4M.fd"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := testConfig(t)
	c.Runner.VM.Firmware = "secure"
	r := start(t, c, d)
	r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	if !r.log.said("Secure Boot enforces nothing") {
		t.Errorf("messages %q", r.log.messages)
	}
	r.cancel()
	r.wait(t)
	// As a template they are refused.
	d = testDirs(t)
	r = start(t, c, d, func(o *Options) {
		o.Host.Firmware = []qemucmd.FirmwareImage{{Secure: true, FourMiB: true, Code: "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd", Vars: "/usr/share/OVMF/OVMF_VARS_4M.fd"}}
	})
	if o, err := r.wait(t); err == nil || !strings.Contains(o.Message, "no platform key") {
		t.Errorf("outcome %+v, %v", o, err)
	}
}

// What a person is told about variables that are gone, do not fit, or have no
// firmware.
func TestFirmwareDecisionIsExplained(t *testing.T) {
	images := []qemucmd.FirmwareImage{{FourMiB: true, Code: "code.4m"}, {Secure: true, FourMiB: true, Code: "secure.4m"}}
	uefi := map[qemucmd.FirmwareKind]firmwareRecord{"uefi": {Code: "code.4m", Vars: "fw-vars.fd"}}
	file := func(fourMiB bool) map[string]varsFile {
		return map[string]varsFile{"fw-vars.fd": {uefiVars: uefiVars{fourMiB: fourMiB}}}
	}
	for _, tt := range []struct {
		name  string
		facts firmwareFacts
		vars  string
		code  string
		said  string // the warning or the error
	}{
		{"the first start", firmwareFacts{kind: "uefi"}, "fw-vars.fd", "", ""},
		{"gone", firmwareFacts{kind: "uefi", recorded: uefi}, "fw-vars.fd", "", "are gone: new ones are made"},
		{"the layout is the one demanded now", firmwareFacts{kind: "uefi-4m", recorded: uefi, files: file(true)}, "fw-vars.fd", "code.4m", ""},
		{"another kind", firmwareFacts{kind: "secure", recorded: uefi, files: file(true)}, "fw-vars.secure.fd", "", ""},
		{"whose record was lost", firmwareFacts{kind: "secure", files: map[string]varsFile{
			"fw-vars.fd": {}, "fw-vars.secure.fd": {uefiVars: uefiVars{fourMiB: true, enrolled: true}},
		}}, "fw-vars.secure.fd", "secure.4m", ""},
		{"of another layout than demanded", firmwareFacts{kind: "uefi-4m", files: file(false)}, "fw-vars.uefi-4m.fd", "", "stay as they are: uefi-4m gets others"},
		{"of a layout that the host has not", firmwareFacts{kind: "uefi", files: file(false)}, "fw-vars.fd", "", "have the 2 MiB flash layout, and this host has no uefi firmware with that"},
		{"without keys", firmwareFacts{kind: "secure", files: file(true)}, "fw-vars.fd", "secure.4m", "enforces nothing"},
	} {
		tt.facts.images, tt.facts.codes = images, map[string]bool{"code.4m": true}
		c, err := decideFirmware(tt.facts)
		said := c.warning
		if err != nil {
			said = err.Error()
		}
		if c.vars != tt.vars || c.code != tt.code || !strings.Contains(said, tt.said) || (said == "") != (tt.said == "") {
			t.Errorf("%s: %+v, %v", tt.name, c, err)
		}
	}
}
