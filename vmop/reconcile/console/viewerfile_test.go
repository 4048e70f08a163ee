package console_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile/console"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func TestViewerFiles(t *testing.T) {
	for name, f := range map[string]console.ViewerFile{
		"spice": {Protocol: console.SPICE, Host: "10.0.0.7", Port: 5900, Password: "AAECAwQFBgcICQoLDA0ODw==", DeleteThisFile: true},
		"proxy": {Protocol: console.SPICE, Host: "fd00::7", Port: 5912, Proxy: "http://squid.example.org:3128", Title: "lab/desk"},
		"vnc":   {Protocol: console.VNC, Host: "desk.example.org", Port: 5901, Password: " a\\b\tc\nd#;= ", DeleteThisFile: true},
		"tls": {
			Protocol: console.SPICE, Host: "127.0.0.1", Port: 34567, TLS: true, Password: "geheim",
			Authorities: "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", Subject: `O=Desks\, Inc,CN=desk`,
		},
		"minimal": {Protocol: console.VNC, Host: "10.0.0.7", Port: 65535},
	} {
		got, err := f.Marshal()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		file := filepath.Join("testdata", name+console.FileExtension)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: run with -update to accept (%v):\n%s", file, err, got)
		}
	}
}

func TestViewerFilesAreRefusedWithAllReasons(t *testing.T) {
	_, err := console.ViewerFile{Protocol: "rdp", Port: 70000, Password: "a\x00b", Title: "\xff"}.Marshal()
	if err == nil {
		t.Fatal("no error")
	}
	want := `viewer file: type: found "rdp", want spice or vnc
viewer file: host: the display has no address
viewer file: port: found 70000, want 1 to 65535
viewer file: password: the value has characters that a key file cannot hold
viewer file: title: the value has characters that a key file cannot hold`
	if err.Error() != want {
		t.Errorf("%v", err)
	}
	if _, err := (console.ViewerFile{Protocol: console.VNC, Host: "a", Port: 1, Proxy: "http://b"}).Marshal(); err == nil {
		t.Error("a proxy for VNC")
	}
	if _, err := (console.ViewerFile{Protocol: console.VNC, Host: "a\nb", Port: 1}).Marshal(); err == nil {
		t.Error("a host of two lines")
	}
}

// Whatever the values are, a reader of key files finds them, and nothing else.
func TestViewerFilesRoundTrip(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune(" \t\n\r\\#;=[]s")), 1, 8, -1))
	rapid.Check(t, func(t *rapid.T) {
		f := console.ViewerFile{Protocol: console.SPICE, Host: "h", Port: 5900, Password: text.Draw(t, "password"), Proxy: text.Draw(t, "proxy"), Title: text.Draw(t, "title")}
		data, err := f.Marshal()
		if err != nil {
			if strings.ContainsFunc(f.Password+f.Proxy+f.Title, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r", r) }) {
				return
			}
			t.Fatal(err)
		}
		want := map[string]string{"type": "spice", "host": "h", "port": "5900"}
		for key, value := range map[string]string{"password": f.Password, "proxy": f.Proxy, "title": f.Title} {
			if value != "" {
				want[key] = value
			}
		}
		got := readKeyFile(t, string(data))
		if len(got) != len(want) {
			t.Fatalf("%q\n%s", got, data)
		}
		for key, value := range want {
			if got[key] != value {
				t.Fatalf("%s: %q, want %q\n%s", key, got[key], value, data)
			}
		}
	})
}

// readKeyFile reads the group virt-viewer as GLib does: white space around keys
// and at the beginning and the end of values does not count, and five escapes
// stand for what cannot be written.
func readKeyFile(t *rapid.T, text string) map[string]string {
	out := map[string]string{}
	lines := strings.Split(text, "\n")
	if lines[0] != "[virt-viewer]" {
		t.Fatalf("begins with %q", lines[0])
	}
	for _, line := range lines[1:] {
		if line = strings.Trim(line, " \t\r\f"); line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("no key: %q", line)
		}
		value = strings.TrimLeft(value, " \t\r\f")
		out[strings.TrimSpace(key)] = strings.NewReplacer(`\\`, `\`, `\s`, " ", `\n`, "\n", `\t`, "\t", `\r`, "\r").Replace(value)
	}
	return out
}
