package controller

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// A machine with a quantity that takes for ever to read is one that cannot be
// understood. Its neighbours in the list are read on.
func TestQuantitiesWithoutEndAreNotRead(t *testing.T) {
	for _, q := range []string{"1e200000000", "1e-2147483647", "1234567890123456789e200000000"} {
		begin := time.Now()
		var m machine
		if err := json.Unmarshal([]byte(`{"metadata":{"name":"a"},"spec":{"vm":{"maximumRam":"`+q+`",
			"disks":[{"volumeClaimTemplate":{"spec":{"resources":{"requests":{"storage":"`+q+`"}}}}}]}}}`), &m); err != nil {
			t.Fatal(err)
		}
		if _, err := m.decode(); !errors.As(err, new(*decodeError)) {
			t.Errorf("%s: %v", q, err)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("%s took %v", q, took)
		}
	}
}
