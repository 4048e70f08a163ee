package vmstatus

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// The API server takes a field that the definition does not have without a word, and
// drops it.
func TestTheFieldsAreThoseOfTheStatus(t *testing.T) {
	var check func(path string, ours, theirs reflect.Type)
	check = func(path string, ours, theirs reflect.Type) {
		for ours.Kind() == reflect.Pointer || ours.Kind() == reflect.Slice {
			ours = ours.Elem()
		}
		for theirs.Kind() == reflect.Pointer || theirs.Kind() == reflect.Slice {
			theirs = theirs.Elem()
		}
		if ours.Kind() != reflect.Struct || ours == reflect.TypeFor[time.Time]() {
			return
		}
		for _, f := range reflect.VisibleFields(ours) {
			name := jsonName(f)
			var of reflect.StructField
			ok := false
			for _, g := range reflect.VisibleFields(theirs) {
				if jsonName(g) == name {
					of, ok = g, true
				}
			}
			if !ok {
				t.Errorf("%s.%s: there is no such field in %s", path, name, theirs)
				continue
			}
			check(path+"."+name, f.Type, of.Type)
		}
	}
	check("status", reflect.TypeFor[Status](), reflect.TypeFor[spec.VirtualMachineStatus]())
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// What becomes of attached disks is told while the machine runs, and no more than the
// definition takes.
func TestStatusOfAttachments(t *testing.T) {
	s := &runner.State{Phase: runner.PhaseBooting, AttachmentKey: "0a", Attachments: []live.Attachment{
		{UID: "1", Name: "data", Phase: live.AttachmentPending, Message: "nobody exports it yet"}, {UID: "2", Name: "logs", Phase: live.AttachmentAttached},
	}}
	part, _ := Of(s, nil, time.Unix(0, 0))
	got, err := json.Marshal(map[string]any{"attachments": part.Attachments, "key": part.AttachmentKey})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"attachments":[{"uid":"1","name":"data","phase":"Pending","message":"nobody exports it yet"},{"uid":"2","name":"logs","phase":"Attached"}],"key":"0a"}`
	if string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	for range 100 {
		s.Attachments = append(s.Attachments, s.Attachments[0])
	}
	if part, _ = Of(s, nil, time.Unix(0, 0)); len(part.Attachments) != maxAttachments {
		t.Errorf("%d are told", len(part.Attachments))
	}
	s.Phase = runner.PhaseStopped
	if part, _ = Of(s, nil, time.Unix(0, 0)); part.Attachments != nil || part.AttachmentKey != "" {
		t.Errorf("of a machine that has ended %v is told", part)
	}
}

// The panics of a guest are told also of a machine that they have ended, until it is
// started again; where there were none, nothing is told.
func TestPanicsAreTold(t *testing.T) {
	for _, phase := range []runner.Phase{runner.PhaseBooting, runner.PhaseStopped} {
		for panics, want := range map[int]string{0: "", 2: `"guestPanics":2,`} {
			part, _ := Of(&runner.State{Phase: phase, GuestPanics: panics}, nil, time.Unix(0, 0))
			got, err := json.Marshal(part)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(got), want) || want == "" && strings.Contains(string(got), "guestPanics") {
				t.Errorf("%s, %d panics: %s", phase, panics, got)
			}
		}
	}
}
