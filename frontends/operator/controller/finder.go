package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// finder maps objects to the machines that they matter to.
type finder struct {
	cache  client.Reader
	starts *starts
}
