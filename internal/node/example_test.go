package node_test

import (
	"context"
	"fmt"
	"os"

	"github.com/vmop/sdk/internal/node"
)

func Example() {
	_ = func(ctx context.Context) error { // a test
		n, err := node.Start(ctx, node.Options{Progress: os.Stderr})
		if err != nil {
			return err
		}
		defer func() { _ = n.Stop() }()
		if err := n.AddStorageClass(ctx, node.StorageClass{Name: "local", Default: true}); err != nil {
			return err
		}
		out, err := n.Kubectl(ctx, "get", "nodes")
		fmt.Println(out)
		return err
	}
}
