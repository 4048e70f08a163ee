package limits_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vmop/sdk/vmop/limits"
)

func TestValues(t *testing.T) {
	network := func(s string) error { _, err := limits.MAC(s); return err }
	model := func(s string) error { _, err := limits.NICModel(s); return err }
	for name, c := range map[string]struct {
		check     func(string) error
		good, bad []string
	}{
		"MAC":       {network, []string{"52:54:00:ab:CD:ef", "52-54-00-ab-cd-ef"}, []string{"", "52:54:00:ab:cd", "5254.00ab.cdef", "01:00:00:00:00:00", "00:00:00:00:00:00", "02:00:00:00:00:00:00:01", "52:54:00:ab:cd:ef,x"}},
		"NIC":       {model, []string{"", "virtio-net", "e1000e"}, []string{"usb-net", "E1000", "e1000,x=y"}},
		"UUID":      {limits.UUID, []string{"6D8f6c2a-5e0b-4b52-9d5a-0f6d3b0e3c11"}, []string{"", "{6d8f6c2a-5e0b-4b52-9d5a-0f6d3b0e3c11}", "6d8f6c2a5e0b4b529d5a0f6d3b0e3c11"}},
		"CPU":       {limits.CPUModel, []string{"host", "max,-avx2", "qemu64,+ssse3,hv-vendor-id=a:b"}, []string{"", "host,", "host,,x", "host, +x", "host,a=b=c", "-host", "host,x=" + strings.Repeat("y", 2000)}},
		"type":      {limits.MachineType, []string{"q35", "pc-q35-7.2"}, []string{"", "pc,accel=tcg", "-pc"}},
		"clock":     {limits.RTCBase, []string{"utc", "localtime", "2026-06-17", "2026-06-17T16:01:21"}, []string{"", "UTC", "2026-13-45", "2026-06-17 16:01:21", "26-06-17"}},
		"interface": {limits.InterfaceName, []string{"br0", "brücke", "br-lan,1"}, []string{"", ".", "..", "a/b", "a:b", "a b", "0123456789abcdef", "a\x00"}},
		"user net":  {limits.UserNetwork, []string{"10.0.2.0/24", "192.168.76.0", "10.1.0.0/255.255.0.0", "10.0.2.0/29", "10.0.0.0/4"}, []string{"", "10.0.2.0/30", "10.0.2.0/3", "10.0.2.0/+24", "::1/64", "10.0.2/24", "10.0.0.0/255.0.255.0"}},
		"image":     {limits.ImageURL, []string{"http://a/b.iso", "HTTPS://a:1/b"}, []string{"", "ftp://a/b", "http:///b", "https://me:secret@a/b", "http://a/b c", "http://[x/%zz", "file:///a", "a.iso"}},
		"text":      {limits.Text, []string{"", "ü €", "\U0001f600"}, []string{"a\nb", "\x7f", "\u0085", "\xff", "\ufffe", "\ufdd0", "\U0001ffff"}},
	} {
		for _, s := range c.good {
			if err := c.check(s); err != nil {
				t.Errorf("%s: %q: %v", name, s, err)
			}
		}
		for _, s := range c.bad {
			if err := c.check(s); err == nil {
				t.Errorf("%s: %q is accepted", name, s)
			}
		}
	}
	if mac, _ := limits.MAC("52-54-00-AB-cd-ef"); mac != "52:54:00:ab:cd:ef" {
		t.Errorf("spelt %s", mac)
	}
	if n := limits.APICIDs(1, 1, 5, 2); n != 10 {
		t.Errorf("5 cores of 2 threads take %d IDs", n)
	}
	if n := limits.APICIDs(2, 1, 5, 1); n != 13 {
		t.Errorf("2 sockets of 5 cores take %d IDs", n)
	}
}

// Nothing that is accepted can begin another option or line.
func FuzzTexts(f *testing.F) {
	f.Add("host,x=y")
	f.Fuzz(func(t *testing.T, s string) {
		if limits.CPUModel(s) == nil && strings.ContainsAny(s, " \n\t\"'{}\\;") || limits.Text(s) == nil && !utf8.ValidString(s) {
			t.Fatalf("%q is accepted", s)
		}
		if mac, err := limits.MAC(s); err == nil {
			if again, err := limits.MAC(mac); err != nil || again != mac {
				t.Fatalf("%q became %q", s, mac)
			}
		}
	})
}

func TestTemplates(t *testing.T) {
	for name, c := range map[string]struct{ standard, refused bool }{
		"": {standard: true}, "Standard-VM-latest.ftl.yaml": {standard: true}, "/opt/vmrunner/templates/Standard-VM-4.0.0.ftl.yaml": {standard: true},
		"My-VM.FTL.yaml": {refused: true}, "standard-vm-latest.ftl.yaml": {refused: true}, "a/b.ftl": {refused: true}, "Standard-VM-1.ftl": {refused: true},
		"machine.tmpl": {}, "a.ftl.yaml/machine.tmpl": {}, "x.ftla": {},
	} {
		if got := limits.IsStandardTemplate(name); got != c.standard {
			t.Errorf("%q is standard: %v", name, got)
		}
		if err := limits.TemplateName(name); (err != nil) != c.refused {
			t.Errorf("%q: %v", name, err)
		}
	}
	for text, refused := range map[string]bool{
		"<#if vm.useTpm>\n- [ \"-tpmdev\" ]\n</#if>": true, "<#-- what -->": true, "<#list 0..<n as i>": true,
		"{{standard}}\n-device\nvirtio-net-pci,id=\"<#1>\"\n": false, "": false, "# ${HOME} <#\n": false,
	} {
		if err := limits.TemplateText(text); (err != nil) != refused {
			t.Errorf("%q: %v", text, err)
		}
	}
}
