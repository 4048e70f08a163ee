package observation

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAnswers(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, test := range []struct {
		err                                   error
		refused, stale, answered, unreachable bool
	}{
		{apierrors.NewForbidden(pods, "a", nil), true, false, true, false},
		{apierrors.NewBadRequest(""), true, false, true, false},
		{apierrors.NewInternalError(errors.New("webhook")), true, false, false, false},
		{apierrors.NewConflict(pods, "a", nil), false, true, true, false},
		{apierrors.NewAlreadyExists(pods, "a"), false, true, true, false},
		{apierrors.NewNotFound(pods, "a"), false, true, true, false},
		{apierrors.NewTooManyRequests("", 1), false, false, true, false},
		{apierrors.NewServiceUnavailable(""), false, false, false, false},
		{apierrors.NewTimeoutError("", 1), false, false, false, false},
		{apierrors.NewServerTimeout(pods, "create", 1), false, false, false, false},
		{errors.New("connection refused"), false, false, false, true},
	} {
		if got := Refused(test.err); got != test.refused {
			t.Errorf("%v: refused %v", test.err, got)
		}
		if got := Stale(test.err); got != test.stale {
			t.Errorf("%v: stale %v", test.err, got)
		}
		if got := Answered(test.err); got != test.answered {
			t.Errorf("%v: answered %v", test.err, got)
		}
		if got := Unreachable(test.err); got != test.unreachable {
			t.Errorf("%v: unreachable %v", test.err, got)
		}
	}
}
