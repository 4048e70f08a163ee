package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// filled reports whether a cache holds the objects of a kind; reading would block otherwise.
func filled(ctx context.Context, c cache.Informers, of client.Object) bool {
	i, err := c.GetInformer(ctx, of, cache.BlockUntilSynced(false))
	return err == nil && i.HasSynced()
}
