package reconcile

import (
	corev1 "k8s.io/api/core/v1"
)

// Event is a Kubernetes event.
type Event struct {
	// About is the object that the event is about; nil is that of the plan.
	About *corev1.ObjectReference
	// Type is Normal or Warning.
	Type string
	// Reason is a word in CamelCase, Action what was being done.
	Reason, Action string
	Note           string
	// Related is what the object waits for, or nil. Events of one reason with different related
	// objects are different events.
	Related *corev1.ObjectReference
}
