package deploytest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/vmop/names"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const (
	deploy = "../../deploy"
	// namespaceOfOne is where the operator for one namespace is installed.
	namespaceOfOne = "lab"
	// patience bounds waiting for controllers.
	patience = 3 * time.Minute
)

// cluster has everything of deploy/ in it, and deploy/namespaced in a namespace.
var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	ctx := context.Background()
	var err error
	if cluster, err = controlplane.Start(ctx, controlplane.Options{Controllers: true, Progress: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	if err := install(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// install does what the documentation says. A warning of the API server is an
// error.
func install(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "vmop-deploytest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := overlay(dir, "namespace: "+namespaceOfOne+"\nresources: [deploy/namespaced, deploy/runner/account, deploy/image-repository]\n"); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"apply", "--warnings-as-errors", "-k", deploy + "/access"},
		{"apply", "--warnings-as-errors", "-k", deploy + "/definitions"},
		{"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"},
		{"apply", "--warnings-as-errors", "-k", deploy},
		{"apply", "--warnings-as-errors", "-k", deploy + "/runner"},
		{"apply", "--warnings-as-errors", "-k", deploy + "/image-repository"},
		{"create", "namespace", namespaceOfOne},
		// Nothing that is installed needs rights on a node, machines included.
		{"label", "namespace", namespaceOfOne, "pod-security.kubernetes.io/enforce=restricted"},
		{"apply", "--warnings-as-errors", "-k", dir},
	} {
		if _, err := cluster.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return awaitMachines(ctx, dir)
}

// awaitMachines waits until machines can be created: the API server refuses what a mutating policy
// concerns until it has read the new definitions.
func awaitMachines(ctx context.Context, dir string) error {
	file := filepath.Join(dir, "machine.yaml")
	text := "apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: tried, namespace: default}\nspec: {vm: {maximumCpus: 1, maximumRam: 1Gi}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		got, err := cluster.Kubectl(ctx, "create", "--dry-run=server", "-f", file, "-o", "jsonpath={.metadata.finalizers}")
		if err == nil {
			if strings.Contains(got, names.FinalizerMachine) {
				return nil
			}
			err = fmt.Errorf("a new machine has the finalizers %q", got)
		}
		if time.Now().After(end) {
			return err
		}
	}
}

// overlay writes a user's kustomization, in which deploy is a folder beside it.
func overlay(dir, text string) error {
	// Kustomizations refer to each other by relative paths.
	if err := os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS(deploy)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)
}

func client(t *testing.T) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := cluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// read reads an object of a core type into a value.
func read(t *testing.T, resource schema.GroupVersionResource, namespace, name string, into any) {
	t.Helper()
	o, err := client(t).Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	convert(t, o, into)
}

func convert(t *testing.T, o *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		t.Fatal(err)
	}
}

// golden compares a text with testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; run with -update to accept:\n%s", file, diffLines(string(want), got))
	}
}

func diffLines(want, got string) string {
	var b strings.Builder
	has := func(text string) map[string]bool {
		m := map[string]bool{}
		for line := range strings.SplitSeq(text, "\n") {
			m[line] = true
		}
		return m
	}
	w, g := has(want), has(got)
	for line := range strings.SplitSeq(want, "\n") {
		if !g[line] {
			fmt.Fprintln(&b, "-"+line)
		}
	}
	for line := range strings.SplitSeq(got, "\n") {
		if !w[line] {
			fmt.Fprintln(&b, "+"+line)
		}
	}
	return b.String()
}
