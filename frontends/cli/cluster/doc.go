// Package cluster is what vmop-cli does with the machines of a Kubernetes
// cluster. It asks for things as kubectl does, by writing the resource; the
// operator does them.
package cluster
