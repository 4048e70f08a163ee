package machine

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/spec"
)

// What a restart waits for comes before what the change is, where a line has no room for
// both: the Secret of the user data has changed, and is gone then.
func TestRestartSaysWhatIsMissing(t *testing.T) {
	path := "spec.cloudInit.userDataFrom"
	lacks := "there is no Secret web-init of spec.cloudInit.userDataFrom.secretRef"
	for about, kept := range map[string]bool{
		"": true,
		": the content of the Secret web-init has changed; see status.restartAwaitingChanges": false,
	} {
		var d decision
		d.awaiting = []spec.AwaitingChange{{Path: path}}
		d.restart.message = waitsForStart(path) + about
		d.restartLacks(lacks)
		m := d.restart.message
		if len(m) > conditions.Line || !strings.HasPrefix(m, waitsForStart(path)) || !strings.Contains(m, lacks) || strings.Contains(m, about) != kept {
			t.Errorf("%d bytes: %s", len(m), m)
		}
	}
}

// Where there is no room for the path of the change either, that is left to
// status.restartAwaitingChanges.
func TestRestartSaysWhatIsMissingBesideALongPath(t *testing.T) {
	lacks := "there is no Secret web-init of spec.cloudInit.userDataFrom.secretRef"
	var d decision
	d.awaiting = []spec.AwaitingChange{{Path: "spec.vm.disks[0].volumeClaimTemplate.spec.resources.requests[storage]"}}
	d.restart.message = waitsForStart(d.awaiting[0].Path)
	d.restartLacks(lacks)
	if m := d.restart.message; len(m) > conditions.Line || !strings.Contains(m, "waits for the next start") || !strings.Contains(m, lacks) {
		t.Errorf("%d bytes: %s", len(m), m)
	}
}
