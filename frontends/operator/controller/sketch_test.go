package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// A kind that is a specification, a decision, an owned object and a status has
// all that machines have: what is written is waited for, what somebody changes is
// repaired, a refusal is explained, and what is as it should be causes no write.
func TestSketchOfAKind(t *testing.T) {
	t.Parallel()
	c, err := controlplane.Start(t.Context(), controlplane.Options{})
	if c != nil {
		t.Cleanup(func() { _ = c.Stop() })
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", "../../../deploy/crds", "-f", "testdata/greetings.yaml"},
		{"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"},
	} {
		if _, err := c.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	writes := &writeLog{}
	o, err := New(c.Config(), Options{WrapTransport: writes.wrap})
	if err != nil {
		t.Fatal(err)
	}
	o.kinds = append(o.kinds, greetingRegistration())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- o.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })

	kube, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	all, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	s := &sketch{T: t, kube: kube, greetings: all.Resource(spec.GroupVersion().WithResource("greetings")).Namespace("default")}

	// Created: one object, one status.
	s.say("hello", "good morning")
	s.isSaid("hello", "good morning", 1)
	s.wrote(writes, "POST configmaps", "PATCH greetings/hello/status")

	// Changed: the object, and the generation in the status.
	s.patch("hello", "good night")
	s.isSaid("hello", "good night", 2)
	s.wrote(writes, "PATCH configmaps/hello", "PATCH greetings/hello/status")

	// What somebody deletes is made anew; the status says so already.
	if err := kube.CoreV1().ConfigMaps("default").Delete(t.Context(), "hello", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.isSaid("hello", "good night", 2)
	s.wrote(writes, "POST configmaps")

	// A refusal is explained. What cannot be decoded holds up nobody.
	s.say("broken", int64(7))
	s.say("loud", strings.Repeat("a", 1<<20+1)) // a ConfigMap has room for 1 MiB
	s.eventually("the refusal is explained", func() error {
		switch status, reason, message, _ := s.condition("loud"); {
		case status != "False" || reason != spec.ReasonWriteRefused || !strings.Contains(message, "create ConfigMap loud"):
			return fmt.Errorf("condition %s, %s: %q", status, reason, message)
		}
		return nil
	})
}

// sketch is the test with its clients.
type sketch struct {
	*testing.T
	kube      kubernetes.Interface
	greetings dynamic.ResourceInterface
}

func (s *sketch) say(name string, text any) {
	s.Helper()
	u := ownKind("default", kindGreeting, name)
	u.Object["spec"] = map[string]any{"text": text}
	if _, err := s.greetings.Create(s.Context(), u, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *sketch) patch(name, text string) {
	s.Helper()
	u, err := s.greetings.Get(s.Context(), name, metav1.GetOptions{})
	if err == nil {
		u.Object["spec"] = map[string]any{"text": text}
		_, err = s.greetings.Update(s.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
}

// condition is what the status says.
func (s *sketch) condition(name string) (status, reason, message string, generation int64) {
	s.Helper()
	u, err := s.greetings.Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		if c, ok := c.(map[string]any); ok && c["type"] == "Said" {
			generation, _ = c["observedGeneration"].(int64)
			message, _ = c["message"].(string)
			return fmt.Sprint(c["status"]), fmt.Sprint(c["reason"]), message, generation
		}
	}
	return "", "", "", 0
}

// isSaid waits until the text is where it should be, and the status says so.
func (s *sketch) isSaid(name, text string, generation int64) {
	s.Helper()
	s.eventually(name+" is said", func() error {
		cm, err := s.kube.CoreV1().ConfigMaps("default").Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, reason, _, seen := s.condition(name)
		if cm.Data["text"] != text || status != "True" || seen != generation {
			return fmt.Errorf("text %q, condition %s (%s) of generation %d", cm.Data["text"], status, reason, seen)
		}
		return nil
	})
}

// wrote waits for the writes since the last call, in any order.
func (s *sketch) wrote(l *writeLog, want ...string) {
	s.Helper()
	slices.Sort(want)
	s.eventually("the writes", func() error {
		if got := l.since(); !slices.Equal(got, want) {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
	l.forget()
}

func (s *sketch) eventually(what string, try func() error) {
	s.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(3 * time.Minute)
	defer late.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late.C:
			s.Fatalf("%s: %v", what, err)
		}
	}
}

// writeLog has the requests that changed something, but for events.
type writeLog struct {
	mu  sync.Mutex
	all []string
}

func (l *writeLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if r.Method != http.MethodGet && err == nil && answer.StatusCode < 300 && !strings.Contains(r.URL.Path, "/events") {
			_, object, _ := strings.Cut(r.URL.Path, "/namespaces/default/")
			l.mu.Lock()
			defer l.mu.Unlock()
			l.all = append(l.all, r.Method+" "+object)
		}
		return answer, err
	})
}

// since are the writes since the last call of forget, sorted.
func (l *writeLog) since() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.all))
}

func (l *writeLog) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = nil
}
