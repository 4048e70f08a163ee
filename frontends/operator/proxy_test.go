package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
)

// proxy stands between an operator and the API server and counts requests.
type proxy struct {
	kubeconfig string

	// old is an API server that does not resize pods.
	old bool

	mu     sync.Mutex
	counts map[string]int
	log    []*request
}

// request is one that was counted.
type request struct {
	text string
	// stale is true if the API server answered that it was about an old version.
	stale bool
}

type requestKey struct{}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	config := cluster.Config()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{counts: map[string]int{}, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ModifyResponse: func(r *http.Response) error {
			if counted, is := r.Request.Context().Value(requestKey{}).(*request); is && r.StatusCode == http.StatusConflict {
				p.mu.Lock()
				defer p.mu.Unlock()
				counted.stale = true
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, p.count(r)))
		if p.old && strings.HasSuffix(r.URL.Path, "/resize") {
			r.URL.Path += "-unknown" // so that the API server itself says what it does not know
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	data, err := json.Marshal(clientcmd.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "proxy",
		Clusters: []clientcmd.NamedCluster{{Name: "proxy", Cluster: clientcmd.Cluster{Server: server.URL}}},
		Contexts: []clientcmd.NamedContext{{Name: "proxy", Context: clientcmd.Context{Cluster: "proxy"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.kubeconfig, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// count notes a request as a verb and a resource, as in "patch vms/status".
func (p *proxy) count(r *http.Request) *request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return nil // discovery
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) == 0 || parts[0] == "leases" || parts[0] == "selfsubjectaccessreviews" {
		return nil // the last asks once what an operator may do, and writes nothing
	}
	name := parts[0]
	if len(parts) > 2 {
		name += "/" + parts[2]
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPatch: "patch", http.MethodPut: "update", http.MethodDelete: "delete"}[r.Method]
	switch {
	case verb != "":
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	case len(parts) == 1:
		verb = "list"
	default:
		verb = "get"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[verb+" "+name]++
	if verb == "watch" {
		return nil
	}
	counted := &request{text: verb + " " + strings.Join(parts, "/")}
	p.log = append(p.log, counted)
	return counted
}

// reset forgets what was counted.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts, p.log = map[string]int{}, nil
}

// requests returns the requests since the last reset but those that keep caches
// up to date and those about events, in order.
func (p *proxy) requests() []string {
	return p.which(func(r *request) bool {
		return !strings.HasPrefix(r.text, "list ") && !strings.Contains(r.text, " events")
	})
}

// events returns the requests about events since the last reset.
func (p *proxy) events() []string {
	return p.which(func(r *request) bool { return strings.Contains(r.text, " events") })
}

// effective returns the requests since the last reset but those that keep caches up to
// date and those that came too late because somebody else wrote before.
func (p *proxy) effective() []string {
	return p.which(func(r *request) bool { return !strings.HasPrefix(r.text, "list ") && !r.stale })
}

func (p *proxy) which(wanted func(*request) bool) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, r := range p.log {
		if wanted(r) {
			out = append(out, r.text)
		}
	}
	return out
}

func (p *proxy) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p.counts)) {
		fmt.Fprintf(&b, "%s: %d\n", k, p.counts[k])
	}
	return b.String()
}
