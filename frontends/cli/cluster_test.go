package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/vmop/sdk/internal/controlplane"
)

// Scripts that work with a real API server. There is no operator: the scripts
// write with kubectl what it would.
func TestClusterScripts(t *testing.T) {
	t.Parallel()
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
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"operation": operationCommand(cluster), "page": pageCommand},
	})
}

// operationCommand waits until there is an operation on a machine, and keeps its name in
// the variable OPERATION: operation NAMESPACE MACHINE [force].
func operationCommand(cluster *controlplane.ControlPlane) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 2 {
			ts.Fatalf("usage: operation NAMESPACE MACHINE [force]")
		}
		filter := `@.spec.virtualMachineName=="` + args[1] + `"`
		if len(args) > 2 {
			filter = "@.spec.force==true"
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for {
			out, err := cluster.Kubectl(ctx, "get", "vmop", "-n", args[0], "-o", `jsonpath={range .items[?(`+filter+`)]}{.metadata.name} {end}`)
			ts.Check(err)
			if name, _, _ := strings.Cut(strings.TrimSpace(out), " "); name != "" {
				ts.Setenv("OPERATION", name)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// Where there are no operations, the machine itself is told, and the user of it.
func TestWithoutOperations(t *testing.T) {
	machine := `{"apiVersion":"vmoperator.jdrupes.org/v1","kind":"VirtualMachine","metadata":{"name":"web","namespace":"shop","uid":"1","generation":1},"spec":{"vm":{"state":"Stopped"}},"status":{"phase":"Stopped","observedGeneration":1}}`
	var patches atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/apis/vmoperator.jdrupes.org/v1/namespaces/shop/")
		w.Header().Set("Content-Type", "application/json")
		switch r.Method + " " + path {
		case "GET vms/web":
			_, _ = io.WriteString(w, machine)
		case "PATCH vms/web":
			body, _ := io.ReadAll(r.Body)
			patches.Store(string(body))
			_, _ = io.WriteString(w, machine)
		default:
			http.NotFound(w, r) // as the API server does it for what it has no definition of
		}
	}))
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"a","cluster":{"server":%q}}],"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"users":[{"name":"a","user":{}}]}`, server.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := Main(t.Context(), []string{"vmop-cli", "start", "shop/web", "--kubeconfig", config, "--no-wait"}, strings.NewReader(""), &out, &errs)
	if code != exitOK || out.String() != "shop/web was asked to start.\n" || !strings.Contains(errs.String(), "does not know VirtualMachineOperations") {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
	if got := patches.Load(); got != `{"spec":{"vm":{"state":"Running"}}}` {
		t.Errorf("the machine was told %v", got)
	}
}
