package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/internal/together"
)

// asOperator lets the test program be the operator: a process that can be
// killed.
const asOperator = "VMOP_TEST_OPERATOR"

// cluster is the API server that tests share.
var cluster *controlplane.ControlPlane

// soon is within 15 seconds, unless starts of API servers show that the machine is
// slow or busy: then it is within twice the time of the slowest.
var soon = struct {
	sync.Mutex
	time.Duration
}{Duration: 15 * time.Second}

func within() time.Duration {
	soon.Lock()
	defer soon.Unlock()
	return soon.Duration
}

// started notes how long the start of an API server took.
func started(begin time.Time) {
	soon.Lock()
	defer soon.Unlock()
	soon.Duration = max(soon.Duration, 2*time.Since(begin))
}

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" {
		main()
	}
	together.Tests()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var err error
	if cluster, err = startCluster(ctx); cluster != nil {
		defer func() {
			if err := cluster.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// startCluster starts a control plane that knows the definitions. One that is
// not nil is to be stopped, also after an error.
func startCluster(ctx context.Context) (*controlplane.ControlPlane, error) {
	begin := time.Now()
	c, err := controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	started(begin)
	return c, define(ctx, c)
}

// define makes the definitions of the resources.
func define(ctx context.Context, c *controlplane.ControlPlane) error {
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", "../../deploy/crds"},
		{"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"},
	} {
		if _, err := c.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// ownCluster starts a control plane for one test, which may do with it what
// others would notice.
func ownCluster(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	c, err := startCluster(t.Context())
	if c != nil {
		t.Cleanup(func() {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
