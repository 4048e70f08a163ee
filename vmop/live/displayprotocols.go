package live

import (
	"strings"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// DisplayProtocols are the display protocols of a machine that is started with this configuration.
func DisplayProtocols(c *runnerconfig.Config) []string {
	if c == nil {
		return nil
	}
	var out []string
	for _, s := range c.Runner.VM.Display.Servers() {
		out = append(out, string(s.Protocol))
	}
	return out
}

// VNCPasswordBytes is how much of a password the VNC protocol compares (RFC 6143, section 7.2.2);
// no other protocol compares less.
const VNCPasswordBytes = 8

func shortens(protocols []string) qemucmd.DisplayProtocol {
	for _, p := range protocols {
		if p := qemucmd.DisplayProtocol(p); p.PasswordBytes() > 0 {
			return p
		}
	}
	return ""
}

// expiryKey identifies an expiry. A relative time starts anew for each password; never is QEMU's
// default.
func expiryKey(time, password string) string {
	if time == "never" {
		return ""
	}
	return time + " for " + password
}

// validExpiry checks what QEMU 7.2 does not.
func validExpiry(s string) bool {
	if s == "now" || s == "never" {
		return true
	}
	digits := strings.TrimPrefix(s, "+")
	return digits != "" && len(digits) < 19 && strings.Trim(digits, "0123456789") == ""
}
