package kubernetes

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/vmop/sdk/vmop/reconcile/live"
)

// Event is a happening that waits to be told.
type Event struct {
	live.Event
	// Name makes the event the same one however often it is sent.
	Name string
	Time time.Time
}

// maxReason and maxNote are the longest reason and note that the API takes, in
// bytes.
const (
	maxReason = 128
	maxNote   = 1024
)

// newEvent is an event that happens now, the nth of a runner.
func newEvent(e live.Event, now time.Time, n int) Event {
	return Event{Event: e, Time: now, Name: strconv.FormatInt(now.UnixNano(), 16) + "." + strconv.Itoa(n)}
}

// object is the event as VM-Operator's runner writes it.
func (e Event) object(namespace, machine, uid string) map[string]any {
	o := map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":            map[string]any{"namespace": namespace, "name": machine + "." + e.Name},
		"eventTime":           e.Time.UTC().Format("2006-01-02T15:04:05.000000Z07:00"), // metav1.MicroTime's form
		"reportingController": ReportingController,
		"reportingInstance":   machine,
		"action":              e.Action,
		"reason":              shortened(e.Reason, maxReason),
		"type":                "Normal",
		"regarding": map[string]any{
			"apiVersion": group + "/" + version, "kind": kind, "namespace": namespace, "name": machine, "uid": uid,
		},
	}
	if e.Note != "" {
		o["note"] = shortened(e.Note, maxNote)
	}
	return o
}

// shortened is the beginning of a text, without half a character at its end.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
