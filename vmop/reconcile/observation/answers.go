package observation

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refused reports whether the API server understood a request and refuses to execute it, rather
// than being unable to. A plan that knows of the refusal decides about the retry.
func Refused(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest,
		metav1.StatusReasonUnauthorized, metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable,
		metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonRequestEntityTooLarge,
		// This is what an admission webhook that fails looks like.
		metav1.StatusReasonInternalError:
		return true
	}
	return false
}

// Stale reports whether a write failed because it was decided on an old observation.
func Stale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// Answered reports whether it is certain that a failed request was not executed and will not be.
// An API server that reports an internal error or a timeout, or a proxy before it, may have
// executed it.
func Answered(err error) bool {
	if Stale(err) || apierrors.IsTooManyRequests(err) {
		return true
	}
	return Refused(err) && !apierrors.IsInternalError(err)
}

// Unreachable reports whether no API server has answered at all.
func Unreachable(err error) bool {
	return err != nil && !errors.As(err, new(apierrors.APIStatus))
}
