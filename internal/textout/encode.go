package textout

import (
	"encoding/json"
	"io"

	"github.com/vmop/sdk/internal/yamljson"
)

// WriteJSON writes a value as JSON with indents.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteYAML writes what WriteJSON writes, with its order.
func WriteYAML(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if data, err = yamljson.FromJSON(data); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
