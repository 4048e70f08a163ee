package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/runnerconfig"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Nothing is believed of what a pod answers but a progress, and nobody is led elsewhere.
func TestWhatPodsSayOfTheirProgress(t *testing.T) {
	var elsewhere atomic.Bool
	answers := map[string]http.HandlerFunc{
		"a progress": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"step":"downloading","done":1,"total":2}`))
		},
		"a long one": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"step":"downloading"}` + strings.Repeat(" ", 4096)))
		},
		"an unknown step": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"step":"\u001b[2J"}`)) },
		"more than all": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"step":"copying","done":3,"total":2}`))
		},
		"less than nothing": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"step":"copying","done":-1}`)) },
		"no JSON":           func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`nearly there`)) },
		"an error":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"another address":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
		"no end": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte("    ")); err != nil {
					return
				}
			}
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc(runnerconfig.ImportProgressPath, answer)
			mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) { elsewhere.Store(true); answers["a progress"](w, r) })
			s := httptest.NewServer(mux)
			defer s.Close()
			got, err := askProgress()(t.Context(), strings.TrimPrefix(s.URL, "http://"))
			if want := (runnerconfig.ImportProgress{Step: "downloading", Done: 1, Total: 2}); name == "a progress" && (err != nil || got != want) {
				t.Errorf("%+v, %v", got, err)
			} else if name != "a progress" && (err == nil || got != runnerconfig.ImportProgress{}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	if elsewhere.Load() {
		t.Error("a pod has led the operator elsewhere")
	}
}

// Nobody waits for a pod, no pod is asked often, few are asked at a time, and a pod whose
// disk is made is forgotten.
func TestNobodyWaitsForProgress(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	asked, answer := make(chan string, 100), make(chan error)
	a := newImportProgress(func() time.Time { return now })
	a.ask = func(ctx context.Context, address string) (runnerconfig.ImportProgress, error) {
		asked <- address
		select {
		case err := <-answer:
			return runnerconfig.ImportProgress{Step: "unpacking"}, err
		case <-ctx.Done():
			return runnerconfig.ImportProgress{}, ctx.Err()
		}
	}
	pod := func(uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1"}}
	}
	idle := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		n := 0
		for _, k := range a.known {
			if !k.asking {
				n++
			}
		}
		return n
	}
	await := func(n int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); idle() != n; {
			if time.Now().After(end) {
				t.Fatalf("%d are idle, want %d", idle(), n)
			}
			time.Sleep(time.Millisecond)
		}
	}
	for range 3 {
		if got := a.of(pod("a")); got != nil {
			t.Errorf("%+v", got)
		}
	}
	if address := <-asked; address != "192.0.2.1:10811" {
		t.Error(address)
	}
	answer <- nil
	await(1)
	for range 3 {
		if got := a.of(pod("a")); got == nil || got.Step != "unpacking" {
			t.Errorf("%+v", got)
		}
	}
	now = now.Add(progressPause)
	a.of(pod("a"))
	<-asked
	answer <- errors.New("nobody is there")
	await(1)
	if got := a.of(pod("a")); got == nil || got.Step != "unpacking" {
		t.Errorf("what is known is forgotten: %+v", got)
	}
	if len(asked) > 0 {
		t.Errorf("%d more questions", len(asked))
	}
	for _, p := range []*corev1.Pod{nil, {Status: corev1.PodStatus{Phase: corev1.PodRunning}}, {Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "evil.test"}}, {Status: corev1.PodStatus{Phase: corev1.PodPending, PodIP: "192.0.2.1"}}} {
		if a.of(p) != nil || len(asked) > 0 {
			t.Errorf("%+v is asked", p)
		}
	}
	now = now.Add(progressKept + time.Second)
	for n := range maxAsked + 5 {
		a.of(pod("many" + string(rune('a'+n))))
	}
	for range maxAsked {
		<-asked
	}
	if len(asked) > 0 {
		t.Errorf("%d more are asked", len(asked))
	}
	for range maxAsked {
		answer <- nil
	}
	await(maxAsked)
	if a.known["a"] != nil {
		t.Error("a pod is remembered for ever")
	}
}

// When the operator ends, what is being asked ends, and nobody is asked any more.
func TestQuestionsAboutProgressEnd(t *testing.T) {
	asked := make(chan struct{}, 2)
	a := newImportProgress(time.Now)
	a.ask = func(ctx context.Context, _ string) (runnerconfig.ImportProgress, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return runnerconfig.ImportProgress{}, ctx.Err()
	}
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1"}}
	}
	a.of(pod("a"))
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Start(ctx); err != nil {
		t.Error(err)
	}
	if a.known["a"].asking {
		t.Error("a question is left behind")
	}
	if a.of(pod("b")); len(asked) > 0 || a.known["b"] != nil {
		t.Error("a pod is asked after the end")
	}
}
