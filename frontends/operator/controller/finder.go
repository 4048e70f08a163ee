package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// finder finds the machines that an object matters to.
type finder struct {
	cache  client.Reader
	starts *starts
}
