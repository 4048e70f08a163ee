package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unfilled is a cache that will never be filled: who reads it waits.
type unfilled struct{ cache.Cache }

func (unfilled) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return apierrors.NewTimeoutError("failed waiting for the informer to sync", 0)
}

func (unfilled) GetInformer(ctx context.Context, _ client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	var o cache.InformerGetOptions
	for _, set := range options {
		set(&o)
	}
	if o.BlockUntilSynced == nil || *o.BlockUntilSynced {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return unfilledInformer{}, nil
}

type unfilledInformer struct{ cache.Informer }

func (unfilledInformer) HasSynced() bool { return false }

// Nobody waits for caches that are not filled: neither who ends, who has no claims then,
// nor who asks for metrics, for which the end would wait, too.
func TestNobodyWaitsForUnfilledCaches(t *testing.T) {
	leads := func() bool { return true }
	for what, do := range map[string]func(*testing.T) error{
		"the end": func(t *testing.T) error {
			ctx, end := context.WithCancel(t.Context())
			end()
			return (&withdrawer{cache: unfilled{}, operator: "a", leads: leads}).Start(ctx)
		},
		"metrics": func(t *testing.T) error {
			c := newCensus()
			c.of(unfilled{}, leads)
			registry := prometheus.NewRegistry()
			registry.MustRegister(c)
			families, err := registry.Gather()
			if len(families) > 0 {
				t.Errorf("they have %v", families)
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				if err := do(t); err != nil {
					t.Error(err)
				}
				if d := time.Since(begin); d > 0 {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}
