package runnerconfig

import (
	"strings"
	"testing"
)

func TestAttachments(t *testing.T) {
	good := Attachment{UID: "0b9f-11", Name: "data", Address: "10.0.0.7:10809", Fingerprint: strings.Repeat("0a", 32)}
	for name, c := range map[string]struct {
		change func(*Attachment)
		want   string
	}{
		"good":                  {func(*Attachment) {}, ""},
		"not exported yet":      {func(a *Attachment) { a.Address, a.Fingerprint = "", "" }, ""},
		"at a path":             {func(a *Attachment) { a.Address, a.Fingerprint, a.Path, a.Place = "", "", "/dev/disk", 6 }, ""},
		"a path and an address": {func(a *Attachment) { a.Path = "/dev/disk" }, "has a path or an address"},
		"a relative path":       {func(a *Attachment) { a.Address, a.Path = "", "disk" }, "must be an absolute path"},
		"a path with a line":    {func(a *Attachment) { a.Address, a.Path = "", "/a\nb" }, "vm.attachments[0].path"},
		"a place beyond":        {func(a *Attachment) { a.Place = 7 }, "want 1 to 6, or 0 for any"},
		"no UID":                {func(a *Attachment) { a.UID = "" }, `vm.attachments[0].uid: "": want 1 to 64`},
		"a UID with a comma":    {func(a *Attachment) { a.UID = "a,id=b" }, "vm.attachments[0].uid"},
		"a name with a space":   {func(a *Attachment) { a.Name = "a b" }, "vm.attachments[0].name"},
		"an address alone":      {func(a *Attachment) { a.Address = "10.0.0.7" }, "want HOST:PORT"},
		"no fingerprint":        {func(a *Attachment) { a.Fingerprint = "" }, "want 64 hexadecimal digits"},
		"a colon in an adress":  {func(a *Attachment) { a.Address = "::1:10809" }, "want HOST:PORT"},
	} {
		a := good
		c.change(&a)
		cfg := Config{Runner: Runner{VM: VM{Name: "web", Attachments: []Attachment{a}}}}
		Default(&cfg)
		err := Validate(&cfg)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg := Config{Runner: Runner{VM: VM{Name: "web", Attachments: []Attachment{good, good}}}}
	Default(&cfg)
	if err := Validate(&cfg); err == nil || !strings.Contains(err.Error(), "is already that of vm.attachments[0]") {
		t.Error(err)
	}
}

// The serial number is the attachment's name, and no disk has that of another.
func TestAttachmentSerials(t *testing.T) {
	vm := VM{
		Drives:      []Drive{{Type: DriveRaw, Name: "data", File: "/a"}, {Type: DriveCD, File: "/logs"}},
		Attachments: []Attachment{{UID: "1", Name: "logs"}, {UID: "2", Name: "data"}, {UID: "3", Name: strings.Repeat("n", 40)}},
	}
	seen := map[string]bool{"data": true}
	for _, a := range vm.Attachments {
		s := vm.AttachmentSerial(a.UID)
		if s == "" || len(s) > 20 || seen[s] {
			t.Errorf("%+v has %q", a, s)
		}
		seen[s] = true
	}
	if s := vm.AttachmentSerial("1"); s != "logs" {
		t.Error(s)
	}
	if s := vm.AttachmentSerial("none"); s != "" {
		t.Error(s)
	}
}
