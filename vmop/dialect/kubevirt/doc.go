// Package kubevirt translates KubeVirt's machines into ours, purely.
package kubevirt
