package controller

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader is what observations are made with.
type reader struct {
	// cache is read; live is the API server, for what the cache may lack.
	cache, live client.Reader
	now         func() time.Time
	// steady is since when all caches are fed, zero if they are not.
	steady func() time.Time
	// kinds are those that the caches keep.
	kinds map[string]cachedKind
	// prepared knows when namespaces got what no cache keeps.
	prepared *preparations
}

// cachedKind is a kind that the caches keep.
type cachedKind struct {
	object func() client.Object
	// ours: the caches keep all of its objects, whatever labels they have.
	ours bool
	// cluster: they are in no namespace.
	cluster bool
}
