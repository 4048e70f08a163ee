package controlplane_test

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/dynamic"

	"github.com/vmop/sdk/internal/controlplane"
)

func Example() {
	_ = func(ctx context.Context) error { // a test
		cluster, err := controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr})
		if err != nil {
			return err
		}
		defer func() { _ = cluster.Stop() }()
		if _, err := dynamic.NewForConfig(cluster.Config()); err != nil {
			return err
		}
		out, err := cluster.Kubectl(ctx, "get", "namespaces")
		fmt.Println(out)
		return err
	}
}
