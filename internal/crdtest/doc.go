// Package crdtest holds the tests of the resource definitions in deploy/crds
// against a real Kubernetes API server: that it takes them without a warning,
// and that it accepts, refuses, completes and shows objects as vmop/spec and the
// documentation say.
package crdtest
