package controller

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmop/sdk/vmop/names"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// withdrawTimeout limits the withdrawal of claims when an operator ends; other operators forget
	// the remaining ones after some time.
	withdrawTimeout = 5 * time.Second
	withdrawals     = 8
)

// withdrawer withdraws, when this operator ends, its claims to machines that another operator looks
// after. It keeps those to machines it looks after itself: it may be about to restart.
type withdrawer struct {
	client   client.Client
	cache    cache.Cache
	live     client.Reader
	operator string
	leads    func() bool
	writes   *writeCounter
	log      logr.Logger
}

// Start implements controller-runtime's Runnable.
func (w *withdrawer) Start(ctx context.Context) error {
	<-ctx.Done()
	if w.operator == "" || !w.leads() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	if !filled(ctx, w.cache, &corev1.ConfigMap{}) {
		return nil // never filled, so there is no claim
	}
	var all corev1.ConfigMapList
	if err := w.cache.List(ctx, &all); err != nil {
		return nil
	}
	e := &executor{client: w.client}
	turns := make(chan struct{}, withdrawals)
	var writing sync.WaitGroup
	defer writing.Wait()
	for i := range all.Items {
		if machinekind.Withdraw(&all.Items[i], w.operator) == nil {
			continue
		}
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		writing.Go(func() {
			defer func() { <-turns }()
			w.withdraw(ctx, e, &all.Items[i])
		})
	}
	return nil
}

func (w *withdrawer) withdraw(ctx context.Context, e *executor, cm *corev1.ConfigMap) {
	for {
		a := machinekind.Withdraw(cm, w.operator)
		if a == nil {
			return
		}
		_, err := e.send(ctx, cm.Namespace, *a)
		w.writes.count(a.Target().Verb, names.KindConfigMap, err)
		if apierrors.IsConflict(err) {
			// The cache was behind.
			fresh := &corev1.ConfigMap{}
			var found bool
			if found, err = get(ctx, w.live, client.ObjectKeyFromObject(cm), fresh); found {
				cm = fresh
				continue
			}
		}
		if err != nil {
			w.log.V(1).Info("the claim to a machine was not taken back", "namespace", cm.Namespace, "name", cm.Name, "reason", err.Error())
		}
		return
	}
}
