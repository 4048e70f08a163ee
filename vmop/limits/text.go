package limits

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Text checks that a text reaches QEMU and comes back over QMP unchanged. Control characters are
// refused: a line break could start a new statement in a template or a protocol.
func Text(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("must be valid UTF-8")
	}
	for _, r := range s {
		switch {
		case unicode.IsControl(r):
			return fmt.Errorf("must not contain control characters such as line breaks or NUL; it has %U", r)
		case r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef:
			// QEMU's JSON parser refuses these.
			return fmt.Errorf("must not contain %U, which is not a Unicode character", r)
		}
	}
	return nil
}

var (
	uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	typePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
)

// UUID checks the text form of RFC 9562, the only one that QEMU accepts.
func UUID(s string) error {
	if !uuidPattern.MatchString(s) {
		return errors.New("must be a UUID such as 6d8f6c2a-5e0b-4b52-9d5a-0f6d3b0e3c11")
	}
	return nil
}

// CPUModel checks QEMU's name of a CPU model with its features: the one option that is
// intentionally in QEMU's syntax.
func CPUModel(s string) error {
	if len(s) > 1024 || !isCPU(s) {
		return errors.New("must be the name of a QEMU CPU model, possibly with features, such as host or max,-avx2")
	}
	return nil
}

// isCPU reports whether a text is a model and its features; a comma begins the next feature, and
// nothing in it can begin another option.
func isCPU(s string) bool {
	const inName, inValue = "_.-", "_.-:+"
	model, features, more := strings.Cut(s, ",")
	if !isWord(model, inName) || model[0] == '.' || model[0] == '-' {
		return false
	}
	for more {
		var feature string
		feature, features, more = strings.Cut(features, ",")
		if feature != "" && (feature[0] == '+' || feature[0] == '-') {
			feature = feature[1:]
		}
		name, value, set := strings.Cut(feature, "=")
		if !isWord(name, inName) || name[0] == '.' || name[0] == '-' || set && !isWord(value, inValue) {
			return false
		}
	}
	return true
}

func isWord(s, others string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(others, c) >= 0) {
			return false
		}
	}
	return s != ""
}

// MachineType checks the syntax of a QEMU machine type. Whether the type exists depends on the QEMU
// that runs it.
func MachineType(s string) error {
	if !typePattern.MatchString(s) {
		return errors.New("must be the name of a QEMU machine type such as pc-q35-7.2")
	}
	return nil
}

// RTCBase checks the initial time of a machine's clock.
func RTCBase(s string) error {
	if s == "utc" || s == "localtime" {
		return nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil && t.Format(layout) == s {
			return nil
		}
	}
	return errors.New("must be utc, localtime or a time such as 2026-06-17T16:01:21 or 2026-06-17")
}

var (
	rtcClocks    = []string{"host", "rt", "vm"}
	panicDevices = []string{"pvpanic-pci", "pvpanic"}
	firmwares    = []string{"bios", "uefi", "uefi-4m", "secure", "secure-4m"}
	streamings   = []string{"off", "all", "filter"}
)

// RTCClock checks the source of a machine's clock.
func RTCClock(s string) error { return oneOf(s, rtcClocks) }

// PanicDevices lists QEMU's devices by which a guest reports a panic.
func PanicDevices() []string { return slices.Clone(panicDevices) }

// PanicDevice checks a device by which a guest reports a panic.
func PanicDevice(s string) error { return oneOf(s, panicDevices) }

// Firmware checks a kind of firmware.
func Firmware(s string) error { return oneOf(s, firmwares) }

// StreamingVideo checks SPICE's mode of video streaming.
func StreamingVideo(s string) error { return oneOf(s, streamings) }

func oneOf(s string, allowed []string) error {
	if !slices.Contains(allowed, s) {
		return fmt.Errorf("must be one of %s", strings.Join(allowed, ", "))
	}
	return nil
}

// isScheme reports whether a text is the scheme of a URI (RFC 3986 §3.1).
func isScheme(s string) bool {
	return isWord(s, "+.-") && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

// URLScheme returns the scheme, in lower case, of a name that is meant as a URL. A colon alone does
// not make one, because file names may contain it.
func URLScheme(name string) (string, bool) {
	scheme, rest, ok := strings.Cut(name, ":")
	if !ok || !isScheme(scheme) {
		return "", false
	}
	scheme = strings.ToLower(scheme)
	known := scheme == "http" || scheme == "https" || scheme == "file"
	return scheme, known || strings.HasPrefix(rest, "//")
}

// ImageURL checks the URL of a CD image on a server, which QEMU's curl driver reads. File URLs must
// have been converted to paths before.
func ImageURL(name string) error {
	if err := Text(name); err != nil {
		return err
	}
	scheme, _ := URLScheme(name)
	u, err := url.Parse(name)
	switch {
	case scheme != "http" && scheme != "https":
		return errors.New("must be a file name, an absolute path or a URL with http, https or file")
	case err != nil:
		return errors.New("is not a valid URL") // the parser's message repeats it, maybe with a password
	case u.Host == "":
		return errors.New("the URL has no host")
	case u.User != nil:
		return errors.New("the URL must not contain a user name or password, which everybody on the host could read in the process list")
	case strings.Contains(name, " "):
		return errors.New("a URL must not contain spaces; write %20")
	}
	return nil
}
