package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/testbin"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// asChild makes the test binary a program that runs a control plane, for the
// test that kills it.
const asChild = "VMOP_TEST_CONTROL_PLANE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		c, err := Start(context.Background(), Options{})
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(c.Dir())
		select {} // until it is killed
	}
	os.Exit(m.Run())
}

func programs(t *testing.T) Programs {
	t.Helper()
	p, err := Ensure(t.Context(), BuildOptions{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// processesOf returns the command lines of processes that mention dir.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(data), dir+"/") {
			found = append(found, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}

func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// One control plane with everything: it gets around a port that is taken, its
// controllers and its scheduler work, it survives the loss of its API server,
// and nothing of it remains.
func TestWholeControlPlane(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	attempts := 0
	c, err := start(t.Context(), programs(t), Options{Controllers: true}, func(n int) ([]int, error) {
		ports, err := freePorts(n)
		if attempts++; attempts == 1 && err == nil {
			ports[0] = taken.Addr().(*net.TCPAddr).Port
		}
		return ports, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Stop() }()
	if attempts != 2 {
		t.Errorf("%d attempts", attempts)
	}

	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "example.org/web:1"}}},
			},
		},
	}}
	deployments := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("default")
	if _, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the controllers make a pod, which the scheduler looks at", func() error {
		out, err := c.Kubectl(t.Context(), "get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].status.conditions[0].reason}")
		if err == nil && out != "Unschedulable" {
			err = fmt.Errorf("the pod's condition has reason %q", out)
		}
		return err
	})

	if err := c.StartAPIServer(t.Context()); err == nil {
		t.Error("a second API server started")
	}
	c.StopAPIServer()
	c.StopAPIServer()
	if _, err := deployments.Get(t.Context(), "web", metav1.GetOptions{}); err == nil {
		t.Error("a stopped API server answers")
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := deployments.Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	if _, err := c.Kubectl(t.Context(), "get", "nonsense"); err == nil || !strings.Contains(err.Error(), "doesn't have a resource type") {
		t.Errorf("kubectl's error is %v", err)
	}
	if out, err := c.Kubectl(t.Context(), "version"); err != nil || strings.Count(out, programsVersion(t)) != 2 {
		t.Errorf("kubectl version: %v\n%s", err, out)
	}
	for _, name := range []string{Etcd, APIServer, ControllerManager, Scheduler} {
		if c.Log(name) == "" {
			t.Errorf("%s has no log", name)
		}
	}

	if n := len(processesOf(t, c.Dir())); n != 4 {
		t.Errorf("%d processes run", n)
	}
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
	if left := processesOf(t, c.Dir()); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
	if exists(c.Dir()) {
		t.Errorf("%s is still there", c.Dir())
	}
}

func programsVersion(t *testing.T) string {
	t.Helper()
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	s, err := readSource(work)
	if err != nil {
		t.Fatal(err)
	}
	return s.version
}

// A test binary that is killed, by a timeout or by hand, stops nothing. Its
// processes must go with it.
func TestKilledTestLeavesNoProcess(t *testing.T) {
	programs(t) // not to be built by the child
	cmd := testbin.Self(t.Context(), t, asChild+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dir := strings.TrimSpace(line)
	defer func() { _ = os.RemoveAll(dir) }()
	if err != nil || !filepath.IsAbs(dir) {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if n := len(processesOf(t, dir)); n != 2 {
		t.Errorf("%d processes run", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	eventually(t, "end of its processes", func() error {
		if left := processesOf(t, dir); len(left) > 0 {
			return fmt.Errorf("still running: %q", left)
		}
		return nil
	})
}

// fakePrograms are programs of which etcd is a script.
func fakePrograms(t *testing.T, etcd string) Programs {
	t.Helper()
	p := Programs{Dir: t.TempDir()}
	if err := os.WriteFile(p.Path(Etcd), []byte("#!/bin/sh\n"+etcd+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFailedStartShowsTheLogAndLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for what, c := range map[string]struct {
		script string
		within time.Duration
		want   []string
		is     error
	}{
		"it ends":                {"echo the disk is gone; exit 3", time.Minute, []string{"etcd ended before it was ready", "exit status 3", "the disk is gone"}, nil},
		"it never becomes ready": {"echo thinking; exec sleep 1000", 5 * time.Second, []string{"etcd is not ready", "connection refused", "thinking"}, context.DeadlineExceeded},
		"every port is taken":    {"echo bind: address already in use; exit 1", time.Minute, []string{"address already in use"}, errPortTaken},
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.within)
			defer cancel()
			_, err := start(ctx, fakePrograms(t, c.script), Options{}, freePorts)
			if err == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %v", want, err)
				}
			}
			if left, err := filepath.Glob(filepath.Join(temp, "vmop-controlplane-*")); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
	if _, err := start(t.Context(), Programs{Dir: temp}, Options{}, freePorts); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without programs: %v", err)
	}
}
