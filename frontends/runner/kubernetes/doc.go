// Package kubernetes reports what becomes of a machine to the Kubernetes API:
// its status, by server-side apply with an owner of its own, and events.
//
// A machine does not depend on that API. What cannot be told now is told later:
// of the status only the latest matters, events wait in their order. Nothing is
// sent while nothing changes, and no connection is kept open.
package kubernetes
