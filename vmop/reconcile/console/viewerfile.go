package console

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MIMEType is the type of a [ViewerFile], by which a browser finds the viewer.
const MIMEType = "application/x-virt-viewer"

// FileExtension is the extension of a [ViewerFile].
const FileExtension = ".vv"

// Protocol is how a display is served.
type Protocol string

// The protocols.
const (
	SPICE Protocol = "spice"
	VNC   Protocol = "vnc"
)

// ViewerFile is what remote-viewer is to connect to.
type ViewerFile struct {
	// Protocol, Host and Port are where the display is. All are required. An IPv6 address is
	// written without brackets.
	Protocol Protocol
	Host     string
	Port     int
	// TLS means that the display accepts only TLS. Viewers of SPICE then trust Authorities,
	// certificates in PEM form, and expect Subject of the display if it is not empty, else Host;
	// those of VNC trust what the viewer's user has configured.
	TLS         bool
	Authorities string
	Subject     string
	// Password is the password of the display, if it has one.
	Password string
	// Proxy is the URL of a proxy, such as http://proxy:3128. Viewers use one for SPICE only.
	Proxy string
	// Title is the title of the viewer's window; empty leaves it to the viewer.
	Title string
	// DeleteThisFile makes the viewer delete the file after reading it, and with it the password.
	DeleteThisFile bool
}

// Marshal returns the content of the file, in the format of GLib's key files: the values are
// UTF-8 with escapes for what would end or change them.
func (f ViewerFile) Marshal() ([]byte, error) {
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf("viewer file: "+format, args...)) }
	if f.Protocol != SPICE && f.Protocol != VNC {
		problem("type: found %q, want spice or vnc", string(f.Protocol))
	}
	if f.Host == "" {
		problem("host: the display has no address")
	}
	if strings.ContainsFunc(f.Host, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		problem("host: %q is no name or address", f.Host)
	}
	if f.Port < 1 || f.Port > 65535 {
		problem("port: found %d, want 1 to 65535", f.Port)
	}
	if f.Proxy != "" && f.Protocol == VNC {
		problem("proxy: viewers have none for VNC")
	}
	var b strings.Builder
	b.WriteString("[virt-viewer]\n")
	entry := func(key, value string, required bool) {
		if !utf8.ValidString(value) || strings.ContainsFunc(value, unwritable) {
			problem("%s: the value has characters that a key file cannot hold", key) // the value may be the password
			return
		}
		if value != "" || required {
			b.WriteString(key + "=" + escapeValue(value) + "\n")
		}
	}
	entry("type", string(f.Protocol), true)
	entry("host", f.Host, true)
	port := "port"
	if f.TLS && f.Protocol == SPICE {
		port = "tls-port"
	}
	entry(port, strconv.Itoa(f.Port), true)
	if f.TLS && f.Protocol == SPICE {
		entry("ca", f.Authorities, false)
		entry("host-subject", f.Subject, false)
	}
	entry("password", f.Password, false)
	entry("proxy", f.Proxy, false)
	entry("title", f.Title, false)
	if f.DeleteThisFile {
		entry("delete-this-file", "1", true)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return []byte(b.String()), nil
}

func unwritable(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' }

// escapeValue escapes a value of a key file. GLib strips spaces at its beginning, and at its end
// too.
func escapeValue(value string) string {
	value = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(value)
	head := len(value) - len(strings.TrimLeft(value, " "))
	value = strings.Repeat(`\s`, head) + value[head:]
	tail := len(value) - len(strings.TrimRight(value, " "))
	return value[:len(value)-tail] + strings.Repeat(`\s`, tail)
}
