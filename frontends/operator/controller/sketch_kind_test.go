package controller

import (
	"github.com/vmop/sdk/vmop/reconcile"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// This file stands for frontends/operator/controller/greetings.go, which
// [registrations] would name.

func greetingRegistration() registration {
	return keptRegistration[Greeting](kindGreeting, "greetings", func(s *setup) error {
		k := kind[greetingSnapshot]{observe: observeGreeting, decide: decideGreeting}
		return addKind(s, "greetings", k, controller.Options{}, func(b *builder.Builder) *builder.Builder {
			owner := handler.EnqueueRequestForOwner(s.manager.GetScheme(), s.manager.GetRESTMapper(), &kept[Greeting]{})
			return b.For(&kept[Greeting]{}).Watches(&corev1.ConfigMap{}, owner)
		})
	})
}

func observeGreeting(w *look) *sight[greetingSnapshot] {
	stored := subject(w, kindGreeting, &kept[Greeting]{})
	if stored == nil {
		return nil
	}
	out := &sight[greetingSnapshot]{object: stored, now: w.now()}
	g, err := stored.decode()
	if err != nil {
		out.instead = &reconcile.Plan{Events: []reconcile.Event{{Type: corev1.EventTypeWarning, Reason: "Unreadable", Action: "Reconcile", Note: err.Error()}}}
		return out
	}
	out.snapshot = greetingSnapshot{
		Greeting: g, ConfigMap: one(w, kindConfigMap, w.name, &corev1.ConfigMap{}), Failures: w.refusals(out.now), Now: out.now,
	}
	return out
}
