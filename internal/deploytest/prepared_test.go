package deploytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/vmop/sdk/frontends/operator/controller"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// roundTripper is a function that is one.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// between is what the operator of a test sends through.
type between struct {
	// deaf: it may not watch what a namespace gets.
	deaf bool

	mu sync.Mutex
	// far: what is refused is not tried again for five minutes, which is longer than
	// the test waits; refused counts it.
	far     bool
	refused int
}

func (b *between) send(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if b.deaf && (strings.HasSuffix(r.URL.Path, "/serviceaccounts") || strings.HasSuffix(r.URL.Path, "/rolebindings")) {
		return forbidden(r, metav1.StatusDetails{}), nil
	}
	resp, err := next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusForbidden || r.Method == http.MethodGet {
		return resp, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused++; b.far {
		_ = resp.Body.Close()
		resp = forbidden(r, metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}})
	}
	return resp, nil
}

func forbidden(r *http.Request, details metav1.StatusDetails) *http.Response {
	text, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusForbidden,
		Reason: metav1.StatusReasonForbidden, Message: "not by this test", Details: &details,
	})
	return &http.Response{
		StatusCode: http.StatusForbidden, Status: "403 Forbidden", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}
}

// onlyByWatch returns when something was refused that is not tried again while the
// test lasts.
func (b *between) onlyByWatch(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	b.far = true
	before := b.refused
	b.mu.Unlock()
	eventually(t, "the operator tries again", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.refused == before {
			return errors.New("it does not")
		}
		b.far = false
		return nil
	})
}

// eventually waits for something, less than five minutes.
func eventually(t *testing.T, what string, is func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := is()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }

func (l *lines) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// A machine in a namespace that is not prepared says what to run, and goes on when
// that was run: with the rights of deploy/ at once, and without the right to watch for
// it when the operator tries again.
func TestANamespaceIsPrepared(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		name := map[bool]string{false: "watched", true: "tried-again"}[deaf]
		t.Run(name, func(t *testing.T) {
			namespace := fmt.Sprintf("prepared-%s-%d", name, time.Now().UnixNano())
			kubectl(t, "create", "namespace", namespace)
			b, log := &between{deaf: deaf}, &lines{}
			startOperator(t, namespace, b, log)
			vm := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "vmoperator.jdrupes.org/v1", "kind": "VirtualMachine", "metadata": map[string]any{"name": "web"},
				"spec": map[string]any{"vm": map[string]any{"maximumCpus": int64(1), "maximumRam": "256Mi", "state": "Running"}},
			}}
			if _, err := client(t).Resource(machines).Namespace(namespace).Create(t.Context(), vm, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"rolebinding vmop-machines-operator", "serviceaccount vm-runner"} {
				commands := remedy(t, namespace, part)
				if !deaf {
					b.onlyByWatch(t)
				}
				for _, command := range commands {
					args := strings.Fields(command)
					if args[0] != "kubectl" {
						t.Fatalf("not a command: %q", command)
					}
					kubectl(t, args[1:]...)
				}
			}
			eventually(t, "the pod is made", func() error {
				_, err := client(t).Resource(pods).Namespace(namespace).Get(t.Context(), "web", metav1.GetOptions{})
				return err
			})
			// It is let go while its operator is there: what holds it would hold up the
			// removal of the definition in other tests.
			kubectl(t, "delete", "vm", "web", "-n", namespace, "--timeout="+patience.String())
			told := 0
			if deaf {
				told = 1
			}
			if n := strings.Count(log.String(), "will be noticed later"); n != told {
				t.Errorf("%d lines instead of %d say that a right is missing:\n%s", n, told, log)
			}
		})
	}
}

// remedy waits until the machine says which commands make a thing.
func remedy(t *testing.T, namespace, part string) (commands []string) {
	t.Helper()
	eventually(t, "the machine says how to make the "+part, func() error {
		got, err := client(t).Resource(machines).Namespace(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var vm spec.VirtualMachine
		convert(t, got, &vm)
		for _, c := range vm.Status.Conditions {
			if _, text, found := strings.Cut(c.Message, "; run: "); found && c.Reason == spec.ReasonNamespaceNotPrepared && strings.Contains(text, part) {
				commands = strings.Split(text, " && ")
				return nil
			}
		}
		return fmt.Errorf("it says %v", vm.Status.Conditions)
	})
	return commands
}

// startOperator runs an operator with the account and the rights of deploy/ for a
// namespace, as it is for all but others.
func startOperator(t *testing.T, namespace string, b *between, log io.Writer) {
	t.Helper()
	list, err := client(t).Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := controller.Options{
		Log:      logr.FromSlogHandler(slog.NewTextHandler(log, nil)),
		Settings: objects.Settings{RunnerImage: "runner"},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) { return b.send(next, r) })
		},
	}
	for i := range list.Items {
		if n := list.Items[i].GetName(); n != namespace {
			o.Without = append(o.Without, n)
		}
	}
	config := rest.CopyConfig(cluster.Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:vmop-system:vmop-operator", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:vmop-system", "system:authenticated"}}
	operator, err := controller.New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- operator.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
