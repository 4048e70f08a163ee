package main

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/spec"
)

// One that has failed is an error of the command, and is told of with its reason.
func TestAFailedOperationIsAnError(t *testing.T) {
	o := spec.NewOperation("shop", "web", spec.OperationStart)
	o.Name = "web-1"
	if r := reported(operated{}, o); r.Phase != string(spec.OperationPending) {
		t.Errorf("%+v", r)
	}
	o.Status.Phase = spec.OperationFailed
	o.Status.Conditions = []spec.Condition{{Type: conditions.Completed, Status: metav1.ConditionFalse, Reason: "Why", Message: "because"}}
	bad := reported(operated{Machine: "web", Namespace: "shop", Type: "Start"}, o)
	bad.failed = true
	good := operated{Machine: "db", Namespace: "shop", Type: "Start", Phase: string(spec.OperationCompleted), Message: "the machine runs"}
	var out, errs bytes.Buffer
	p := &program{stdout: &out, stderr: &errs}
	err := p.printOperated([]operated{bad, good}, formatText)
	if err == nil || err.Error() != "1 of 2 failed" || !strings.Contains(errs.String(), "shop/web: start: Failed: because") || out.String() != "shop/db: start: Completed: the machine runs\n" {
		t.Errorf("%v\n%s%s", err, &out, &errs)
	}
	if err := p.printOperated([]operated{good}, formatJSON); err != nil || !strings.Contains(out.String(), `"result": "Completed"`) {
		t.Errorf("%v\n%s", err, &out)
	}
}
