package qmp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

// request is a command that is being encoded. Requests are reused because memory is most of the
// cost of encoding a small one, and kept short because QEMU (measured with 7.2) reads its monitor
// byte by byte, at about 4 µs each.
type request struct {
	line    bytes.Buffer
	encoder *json.Encoder // writes to line
}

var requests = sync.Pool{New: func() any {
	r := new(request)
	r.encoder = json.NewEncoder(&r.line)
	r.encoder.SetEscapeHTML(false)
	return r
}}

func (r *request) recycle() {
	if r.line.Cap() <= keepBuffer {
		requests.Put(r)
	}
}

func (r *request) begin(name string, args any, oob bool) error {
	r.line.Reset()
	if name == "" {
		return errors.New("qmp: command without a name")
	}
	if oob {
		r.line.WriteString(`{"exec-oob":`)
	} else {
		r.line.WriteString(`{"execute":`)
	}
	if err := r.value(name); err != nil {
		return fmt.Errorf("qmp: command name: %w", err)
	}
	if args == nil {
		return nil
	}
	const member = `,"arguments":`
	before := r.line.Len()
	r.line.WriteString(member)
	if err := r.value(args); err != nil {
		return fmt.Errorf("qmp: %s: encode arguments: %w", name, err)
	}
	switch encoded := r.line.Bytes()[before+len(member):]; {
	case string(encoded) == "null", string(encoded) == "{}":
		r.line.Truncate(before)
	case encoded[0] != '{':
		return fmt.Errorf("qmp: %s: arguments must be a JSON object", name)
	}
	return nil
}

func (r *request) value(v any) error {
	if err := r.encoder.Encode(v); err != nil {
		return err
	}
	r.line.Truncate(r.line.Len() - 1)
	return nil
}

func (r *request) finish(id uint64) []byte {
	if id != 0 {
		r.line.WriteString(`,"id":`)
		r.line.Write(strconv.AppendUint(r.line.AvailableBuffer(), id, 10))
	}
	r.line.WriteString("}\n")
	return r.line.Bytes()
}
