package live

import "strings"

const spice = "spice"

func (d *decider) display() {
	c, s, ticketing := d.in.Config.Runner.VM.Display, d.in.Display, d.in.Machine.Ticketing
	switch {
	case c == nil || c.SPICE == nil:
		d.condition(DisplayPasswordSet, True, ReasonAsConfigured, "there is no display to protect")
		return
	case s.Problem != "":
		d.condition(DisplayPasswordSet, False, ReasonRefused, "%s", s.Problem)
		return
	case !ticketing && s.Password == "":
		d.condition(DisplayPasswordSet, True, ReasonNoPassword, "the display has no password")
		return
	case !ticketing:
		d.condition(DisplayPasswordSet, False, ReasonChangesWait, "the display was started without a password and gets one with the next start")
		return
	case s.Password == "":
		d.condition(DisplayPasswordSet, False, ReasonNoPassword, "the password is gone from the secret; the display keeps the last one")
		return
	}
	expiry := s.Expiry
	if expiry == "" {
		expiry = "never"
	}
	if !validExpiry(expiry) {
		// A new password is not set either: it would be valid for ever.
		d.condition(DisplayPasswordSet, False, ReasonRefused, `the expiry of the password is none: want "now", "never", "+SECONDS" or seconds since 1970`)
		return
	}
	// The expiry comes first, so that no password is valid for longer than meant.
	reason, message := "", ""
	pending := func(what string, exhausted bool, problem string) {
		reason, message = ReasonAdjusting, what+" of the display is not set yet"+because(problem)
		if exhausted {
			reason, message = ReasonRefused, what+" of the display was not set"+because(problem)
		}
	}
	if key := expiryKey(expiry, s.Password); key != d.in.Memory.Expiry {
		exhausted, problem := d.attempt(d.goal(key), ExpireDisplayPassword{Protocol: spice, Time: expiry, For: s.Password})
		pending("the password's expiry", exhausted, problem)
	}
	if s.Password != d.in.Memory.Password {
		exhausted, problem := d.attempt(d.goal(s.Password), SetDisplayPassword{Protocol: spice, Digest: s.Password})
		pending("the password", exhausted, problem)
	}
	if reason != "" {
		d.condition(DisplayPasswordSet, False, reason, "%s", message)
		return
	}
	d.asConfigured(DisplayPasswordSet)
}

// expiryKey names an expiry that was set. A time from now on counts anew for each
// password; never is what QEMU has from the start.
func expiryKey(time, password string) string {
	if time == "never" {
		return ""
	}
	return time + " for " + password
}

// validExpiry guards what QEMU 7.2 does not check.
func validExpiry(s string) bool {
	if s == "now" || s == "never" {
		return true
	}
	digits := strings.TrimPrefix(s, "+")
	return digits != "" && len(digits) < 19 && strings.Trim(digits, "0123456789") == ""
}
