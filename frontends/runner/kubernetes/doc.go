// Package kubernetes reports what becomes of a machine to the Kubernetes API:
// its status, by server-side apply with an owner of its own, and events.
//
// A machine does not depend on that API. What cannot be reported now is reported later:
// the latest status, and all events in their order. Nothing is sent while nothing changes,
// and no connection is kept open.
package kubernetes
