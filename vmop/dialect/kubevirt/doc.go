// Package kubevirt translates KubeVirt's machines into ours, purely.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package kubevirt
