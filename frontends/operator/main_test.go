package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/controlplane"
)

// asOperator lets the test program be the operator: a process that can be
// killed.
const asOperator = "VMOP_TEST_OPERATOR"

// cluster is the API server that all tests share.
var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" {
		main()
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var err error
	if cluster, err = controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", "../../deploy/crds"},
		{"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"},
	} {
		if _, err := cluster.Kubectl(ctx, args...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}
