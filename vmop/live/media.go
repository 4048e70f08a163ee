package live

import (
	"net/url"
	"path"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

type problem struct{ reason, message string }

func (d *decider) media() {
	observed := map[string]Drive{}
	for _, o := range d.in.Observed.Drives {
		observed[o.ID] = o
	}
	var problems []problem
	n := 0
	for _, w := range d.in.Config.Runner.VM.Drives {
		if w.Type != runnerconfig.DriveCD {
			continue
		}
		id := qemucmd.CDID(n)
		n++
		o, exists := observed[id]
		if !exists {
			problems = append(problems, problem{ReasonChangesWait, id + ": the drive will be there after the next start"})
			continue
		}
		if w.ReadOnly {
			if name, _, _ := imageName(w.File); !same(o.Medium, name) {
				problems = append(problems, problem{ReasonChangesWait, id + ": the image will be in the drive after the next start"})
			}
			continue
		}
		if reason, message := d.medium(o, w.File); reason != "" {
			problems = append(problems, problem{reason, id + ": " + message})
		}
	}
	if len(problems) == 0 {
		d.asConfigured(MediaChanged)
		return
	}
	// Any other reason takes precedence.
	reason := ReasonAdjusting
	var messages []string
	for _, p := range problems {
		if reason == ReasonAdjusting {
			reason = p.reason
		}
		messages = append(messages, p.message)
	}
	told, _ := conditions.List(messages, "; ", 0)
	d.condition(MediaChanged, False, reason, "%s", told)
}

// medium brings a drive to its medium. Only the medium counts: whether the tray is open is left to
// the guest. QEMU blocks while it waits for an http server, for five seconds at most; the number of
// attempts bounds these pauses of the guest.
func (d *decider) medium(o Drive, wanted string) (reason, message string) {
	file, isURL, err := imageName(wanted)
	switch {
	case err != "":
		return ReasonRefused, err
	case same(o.Medium, file):
		return "", ""
	case isURL && !d.in.Machine.HTTPImages:
		return ReasonCurlMissing, "QEMU has no curl driver for " + file + " (Debian: package qemu-block-extra)"
	}
	goal := d.goal(file)
	var step Step
	switch {
	case o.Locked && !o.TrayOpen:
		exhausted, problem := d.attempt(goal, OpenTray{ID: o.ID})
		if exhausted {
			return ReasonWaitingForTray, "the guest has locked the tray and was asked to open it" + because(problem)
		}
		return ReasonAdjusting, "the guest is asked to open the tray"
	case file != "":
		step = ChangeMedium{ID: o.ID, File: file}
	case o.TrayOpen:
		step = RemoveMedium{ID: o.ID}
	default:
		step = OpenTray{ID: o.ID}
	}
	exhausted, problem := d.attempt(goal, step)
	if exhausted {
		if _, opening := step.(OpenTray); opening && problem == "" {
			return ReasonWaitingForTray, "the tray does not open"
		}
		return ReasonRefused, "the medium cannot be changed" + because(problem)
	}
	return ReasonAdjusting, "changing the medium" + because(problem)
}

// imageName returns a medium's name for QEMU. A relative path gets a prefix so that QEMU does not
// take it for a protocol.
func imageName(image string) (name string, isURL bool, problem string) {
	if image == "" {
		return "", false, ""
	}
	if scheme, _, found := strings.Cut(image, "://"); found && !strings.Contains(scheme, "/") {
		u, err := url.Parse(image)
		switch {
		case err != nil || u.Host == "":
			return "", true, "the image is no valid URL"
		case u.Scheme != "http" && u.Scheme != "https":
			return "", true, "only files and http and https URLs can be images"
		case u.User != nil:
			return "", true, "the URL contains a user name or password"
		}
		return u.Scheme + image[len(scheme):], true, ""
	}
	if path.IsAbs(image) {
		return path.Clean(image), false, ""
	}
	return "./" + path.Clean(image), false, ""
}

// same reports whether two names are of one image. QEMU may report the name that it was started
// with.
func same(observed, name string) bool {
	other, _, _ := imageName(observed)
	return other == name
}
