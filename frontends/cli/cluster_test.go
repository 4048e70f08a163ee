package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/vmop/sdk/internal/controlplane"
)

// Scripts that work with a real API server. There is no operator: the scripts
// write with kubectl what it would.
func TestClusterScripts(t *testing.T) {
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if out, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "-f", "../../deploy/crds"); err != nil {
		t.Fatal(out, err)
	}
	if out, err := cluster.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"); err != nil {
		t.Fatal(out, err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/cluster", UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			if err := setup(e); err != nil {
				return err
			}
			e.Setenv("KUBECONFIG", cluster.Kubeconfig())
			e.Setenv("PATH", cluster.Programs().Dir+string(os.PathListSeparator)+e.Getenv("PATH"))
			return nil
		},
	})
}
