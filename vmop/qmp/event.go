package qmp

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event is an event that QEMU emitted.
type Event struct {
	// Name is the event's name in the QAPI schema, such as "SHUTDOWN".
	Name string
	// Data are the event's parameters, nil if it has none. DecodeEvent decodes them into a typed
	// payload.
	Data json.RawMessage
	// Timestamp is when QEMU emitted the event, by the host's clock; zero if QEMU could not read
	// it.
	Timestamp time.Time
	// Missed is the number of events that this subscription dropped directly before this one,
	// because they were not fetched in time.
	Missed uint64
}

// EventData is the typed payload of one event.
type EventData interface {
	// QMPEvent returns the name of the event. It must work on the zero value.
	QMPEvent() string
}

// DecodeEvent returns the payload of e as the type E. It is an error if e is another event.
func DecodeEvent[E EventData](e Event) (E, error) {
	var data E
	if want := data.QMPEvent(); e.Name != want {
		return data, fmt.Errorf("qmp: event is %s, not %s", e.Name, want)
	}
	if len(e.Data) == 0 {
		return data, nil
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return data, fmt.Errorf("qmp: event %s: %w", e.Name, err)
	}
	return data, nil
}
