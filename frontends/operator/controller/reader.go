package controller

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

type reader struct {
	// cache is read; live is the API server, for what the cache may lack.
	cache, live client.Reader
	now         func() time.Time
	// steady is since when all watches are established, zero if they are not.
	steady func() time.Time
	kinds  map[string]cachedKind
	// prepared knows when namespaces got the objects that no cache keeps.
	prepared *preparations
}

type cachedKind struct {
	object func() client.Object
	// ours: the caches keep all its objects, whatever their labels.
	ours    bool
	cluster bool
}
