package kubernetes

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/names"
)

// Event is an event that is yet to be sent.
type Event struct {
	live.Event
	// Name identifies the event, however often it is sent.
	Name string
	Time time.Time
}

// The limits of the API for reason and note, in bytes. It always refuses longer ones.
const (
	maxReason = 128
	maxNote   = 1024
)

// newEvent returns an event of now, the nth of a runner.
func newEvent(e live.Event, now time.Time, n int) Event {
	return Event{Event: e, Time: now, Name: strconv.FormatInt(now.UnixNano(), 16) + "." + strconv.Itoa(n)}
}

// object returns the event as VM-Operator's runner writes it.
func (e Event) object(namespace, machine, uid string) map[string]any {
	kind := "Normal"
	if e.Warning {
		kind = "Warning"
	}
	o := map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":            map[string]any{"namespace": namespace, "name": machine + "." + e.Name},
		"eventTime":           e.Time.UTC().Format("2006-01-02T15:04:05.000000Z07:00"), // metav1.MicroTime's form
		"reportingController": names.RunnerController,
		"reportingInstance":   machine,
		"action":              e.Action,
		"reason":              cut(e.Reason, maxReason),
		"type":                kind,
		"regarding": map[string]any{
			"apiVersion": names.Group + "/" + names.Version, "kind": names.KindVirtualMachine, "namespace": namespace, "name": machine, "uid": uid,
		},
	}
	if e.Note != "" {
		o["note"] = cut(e.Note, maxNote)
	}
	return o
}

// cut shortens a text to a number of bytes without splitting characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
