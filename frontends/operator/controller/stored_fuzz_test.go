package controller

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// Whoever may write machines, or any field that the definitions leave open, writes
// what is kept of them: it is read without failing where it is an object, takes no
// more room than it had, and what is kept reads the same again.
func FuzzStored(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"metadata":null}`, `{"spec":[],"status":1}`,
		`{"metadata":{"name":"a","namespace":"b","uid":"c","generation":9,"managedFields":[{"manager":"vmop-operator","fieldsV1":{"f:status":{"f:phase":{}}},"subresource":"status"}]}}`,
		`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","k8s.io/initial-events-end":"true"}}}`,
		`{"spec":{"pools":["a"],"vm":{"disks":[{"volumeClaimName":"x"},{"cdrom":{}},null]}},"status":{"phase":"Running","assignment":{"pool":"p"},"conditions":[{"type":"ConsoleConnected","status":"True"}]}}`,
		`{"status":{"conditions":{"type":1},"phase":{"x":[[[[]]]]}},"spec":{"pools":"a"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m, again machine
		if err := m.UnmarshalJSON(data); err != nil {
			return // no object, or no metadata
		}
		// Escapes may take six bytes for one.
		if most := 6*len(data) + 100; len(m.data) > most {
			t.Fatalf("%d bytes became %d", len(data), len(m.data))
		}
		if n := len(m.authors); n > len(data)+100 {
			t.Fatalf("%d bytes of authors from %d", n, len(data))
		}
		text := m.data.text()
		if most := 6*len(data) + 100; len(text) > most || !json.Valid(text) {
			t.Fatalf("kept: %q", text)
		}
		if err := again.UnmarshalJSON(text); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		again.authors, again.Annotations = m.authors, m.Annotations
		if !reflect.DeepEqual(m, again) {
			t.Fatalf("kept once %+v, twice %+v", m, again)
		}
		before := bytes.Clone(m.data)
		vm, err := m.decode()
		if (vm == nil) == (err == nil) {
			t.Fatalf("%+v, %v", vm, err)
		}
		if err != nil && len(err.Error()) > 6*len(data)+1000 {
			t.Fatalf("an error of %d bytes for %d", len(err.Error()), len(data))
		}
		_ = m.status()
		if !bytes.Equal(before, m.data) {
			t.Fatal("what is kept was changed")
		}
	})
}
