package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// filled reports whether a cache has the objects of a kind, for which who reads them waits
// otherwise.
func filled(ctx context.Context, c cache.Informers, of client.Object) bool {
	i, err := c.GetInformer(ctx, of, cache.BlockUntilSynced(false))
	return err == nil && i.HasSynced()
}
