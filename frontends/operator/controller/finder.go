package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type finder struct {
	cache  client.Reader
	starts *starts
}
