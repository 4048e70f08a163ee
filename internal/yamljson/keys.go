package yamljson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Member is a member of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Keys lists the members of a JSON object in their order.
func Keys(data json.RawMessage) ([]Member, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if tok != json.Delim('{') {
		return nil, fmt.Errorf("want an object, found %v", tok)
	}
	var out []Member
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := Member{Name: k.(string)}
		if err := dec.Decode(&m.Value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
