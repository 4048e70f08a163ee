package live

import (
	"github.com/vmop/sdk/vmop/qemucmd"
)

// The protocols of the display, as QEMU names them.
const (
	SPICE = string(qemucmd.SPICEProtocol)
	VNC   = string(qemucmd.VNCProtocol)
)

func (d *decider) display() {
	protocols, s, ticketing := DisplayProtocols(d.in.Machine.Started), d.in.Display, d.in.Machine.Ticketing
	switch {
	case len(protocols) == 0:
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
		// Without a valid expiry, a new password would be valid for ever, so it is not set.
		d.condition(DisplayPasswordSet, False, ReasonRefused, `the expiry of the password is none: want "now", "never", "+SECONDS" or seconds since 1970`)
		return
	}
	reason, message := "", ""
	pending := func(what string, exhausted bool, problem string) {
		switch {
		case exhausted:
			reason, message = ReasonRefused, what+" of the display was not set"+because(problem)
		case reason != ReasonRefused:
			reason, message = ReasonAdjusting, what+" of the display is not set yet"+because(problem)
		}
	}
	for _, p := range protocols {
		// The expiry comes first, so that no password is valid for longer than intended.
		if key := expiryKey(expiry, s.Password); key != d.in.Memory.Secrets[p].Expiry {
			exhausted, problem := d.attempt(d.goal(key), ExpireDisplayPassword{Protocol: p, Time: expiry, For: s.Password})
			pending("the password's expiry", exhausted, problem)
		}
		if s.Password != d.in.Memory.Secrets[p].Password {
			exhausted, problem := d.attempt(d.goal(s.Password), SetDisplayPassword{Protocol: p, Digest: s.Password})
			pending("the password", exhausted, problem)
		}
	}
	switch {
	case reason != "":
		d.condition(DisplayPasswordSet, False, reason, "%s", message)
	case s.Long && shortens(protocols) != "":
		p := shortens(protocols)
		d.condition(DisplayPasswordSet, True, ReasonAsConfigured, "the password is longer than the %d bytes that %s compares", p.PasswordBytes(), p.Row().Title)
	default:
		d.asConfigured(DisplayPasswordSet)
	}
}
