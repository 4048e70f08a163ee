package machine

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/runtime"
)

func extension(raw json.RawMessage) *runtime.RawExtension {
	if raw == nil {
		return nil
	}
	return &runtime.RawExtension{Raw: raw}
}

// sameAwaiting compares values rather than text: the API server orders the fields of a value
// itself.
func sameAwaiting(a, b spec.AwaitingChange) bool {
	return a.Operation == b.Operation && a.Path == b.Path && a.Message == b.Message &&
		sameValue(a.CurrentValue, b.CurrentValue) && sameValue(a.DesiredValue, b.DesiredValue)
}

func sameValue(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	x, errX := decodeValue(a.Raw)
	y, errY := decodeValue(b.Raw)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func decodeValue(raw []byte) (any, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err := dec.Decode(&v)
	return v, err
}
