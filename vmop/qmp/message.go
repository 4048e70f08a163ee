package qmp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// message is any line that QEMU may send: greeting, reply, refusal or event. Its fields are the
// JSON texts of the members, nil if absent; they alias the parsed line.
type message struct {
	qmp       []byte
	id        []byte
	result    []byte // "return"
	refusal   []byte // "error"
	event     []byte
	data      []byte
	timestamp []byte
}

// parseMessage splits a line into its members. It is called for every message, so it neither
// allocates nor decodes.
func parseMessage(line []byte) (message, error) {
	var m message
	if !json.Valid(line) || line[0] != '{' {
		return m, fmt.Errorf("%w: not a JSON object: %s", ErrProtocol, excerpt(line))
	}
	eachMember(line, func(name, value []byte) {
		switch string(name) {
		case `"QMP"`:
			m.qmp = value
		case `"id"`:
			m.id = value
		case `"return"`:
			m.result = value
		case `"error"`:
			m.refusal = value
		case `"event"`:
			m.event = value
		case `"data"`:
			m.data = value
		case `"timestamp"`:
			m.timestamp = value
		}
	})
	kinds := 0
	for _, member := range [...][]byte{m.qmp, m.result, m.refusal, m.event} {
		if member != nil {
			kinds++
		}
	}
	if kinds != 1 {
		return m, fmt.Errorf("%w: neither a greeting, a reply nor an event: %s", ErrProtocol, excerpt(line))
	}
	return m, nil
}

// eachMember calls f with the name, in quotes, and the value of each member of a JSON object, which
// must be valid.
func eachMember(object []byte, f func(name, value []byte)) {
	rest := bytes.TrimLeft(object[1:], jsonSpace)
	for rest[0] == '"' {
		n := valueEnd(rest)
		name := rest[:n]
		rest = bytes.TrimLeft(rest[n:], jsonSpace)
		rest = bytes.TrimLeft(rest[1:], jsonSpace) // after the colon
		n = valueEnd(rest)
		f(name, rest[:n])
		rest = bytes.TrimLeft(rest[n:], jsonSpace)
		rest = bytes.TrimLeft(rest[1:], jsonSpace) // after a comma or the brace
		if len(rest) == 0 {
			return
		}
	}
}

const jsonSpace = " \t\r\n"

// valueEnd returns the length of the JSON value at the beginning of b. The value must be valid and
// followed by something.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of what encloses a number or a word
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
}

func (m *message) greeting() (Greeting, error) {
	var g Greeting
	if err := json.Unmarshal(m.qmp, &g); err != nil {
		return g, fmt.Errorf("%w: greeting: %w", ErrProtocol, err)
	}
	return g, nil
}

func (m *message) callID() (id uint64, ok bool, err error) {
	if m.id == nil {
		return 0, false, nil
	}
	id, err = strconv.ParseUint(string(m.id), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%w: reply with foreign id %s", ErrProtocol, excerpt(m.id))
	}
	return id, true, nil
}

// eventHead returns an event without its data. It does not alias the line.
func (m *message) eventHead() (Event, error) {
	var e Event
	if err := json.Unmarshal(m.event, &e.Name); err != nil {
		return e, fmt.Errorf("%w: event: %w", ErrProtocol, err)
	}
	// Both are -1 when the host's clock could not be read (QMP specification).
	at := struct {
		Seconds      int64 `json:"seconds"`
		Microseconds int64 `json:"microseconds"`
	}{-1, -1}
	if m.timestamp != nil {
		if err := json.Unmarshal(m.timestamp, &at); err != nil {
			return e, fmt.Errorf("%w: timestamp of event %s: %w", ErrProtocol, e.Name, err)
		}
	}
	if at.Seconds >= 0 {
		e.Timestamp = time.Unix(at.Seconds, at.Microseconds*1000)
	}
	return e, nil
}

func excerpt(b []byte) string {
	const most = 80
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "..."
	}
	return strconv.Quote(string(b))
}
