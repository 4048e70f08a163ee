// Package e2e runs a machine where it is meant to run: in the pod of a real
// node, made from images of what was just built. Its tests need root and have
// the build tag e2e: "make test-e2e".
package e2e
