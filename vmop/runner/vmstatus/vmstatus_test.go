package vmstatus

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runner"
)

// What becomes of attached disks is told while the machine runs, and no more than the
// definition takes.
func TestStatusOfAttachments(t *testing.T) {
	s := &runner.State{Phase: runner.PhaseBooting, AttachmentKey: "0a", Attachments: []live.Attachment{
		{UID: "1", Name: "data", Phase: live.AttachmentPending, Message: "nobody exports it yet"}, {UID: "2", Name: "logs", Phase: live.AttachmentAttached},
	}}
	part, _ := Of(s, nil, time.Unix(0, 0))
	got, err := json.Marshal(map[string]any{"attachments": part["attachments"], "key": part["attachmentKey"]})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"attachments":[{"message":"nobody exports it yet","name":"data","phase":"Pending","uid":"1"},{"name":"logs","phase":"Attached","uid":"2"}],"key":"0a"}`
	if string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	for range 100 {
		s.Attachments = append(s.Attachments, s.Attachments[0])
	}
	if part, _ = Of(s, nil, time.Unix(0, 0)); len(part["attachments"].([]any)) != maxAttachments {
		t.Errorf("%d are told", len(part["attachments"].([]any)))
	}
	s.Phase = runner.PhaseStopped
	if part, _ = Of(s, nil, time.Unix(0, 0)); part["attachments"] != nil || part["attachmentKey"] != nil {
		t.Errorf("of a machine that has ended %v is told", part)
	}
}
