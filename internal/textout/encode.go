package textout

import (
	"encoding/json"
	"io"

	"github.com/vmop/sdk/internal/yamljson"
)

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteYAML writes the same as YAML, in the order of WriteJSON.
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
