package controller_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/vmop/sdk/frontends/operator/controller"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"k8s.io/client-go/rest"
)

// A program of one's own that looks after the machines of one namespace.
func ExampleNew() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	m, err := controller.New(config, controller.Options{
		Settings:   objects.Settings{RunnerImage: "registry.example.org/vmop-runner:1.0"},
		Namespaces: []string{"lab"},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := m.Start(ctx); err != nil {
		log.Print(err)
	}
}
