package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fakeAPI lists and watches machines that nothing happens to. What an operator
// costs when many machines run can be seen with it in seconds; an API server
// would need minutes to store them.
type fakeAPI struct {
	*httptest.Server
	// objects are what there is of each kind, as JSON.
	objects map[string][][]byte

	mu     sync.Mutex
	writes []string
}

// fakeResources are those that it has.
var fakeResources = append(ownResources(), []metav1.APIResource{
	{Name: "pods", Kind: kindPod}, {Name: "configmaps", Kind: kindConfigMap}, {Name: "services", Kind: kindService},
	{Name: "secrets", Kind: kindSecret}, {Name: "persistentvolumeclaims", Kind: kindClaim},
	{Name: "statefulsets", Kind: "StatefulSet", Group: "apps"},
}...)

// ownResources are those of the operator's kinds.
func ownResources() []metav1.APIResource {
	var out []metav1.APIResource
	for _, r := range registrations() {
		out = append(out, metav1.APIResource{Name: r.resource, Kind: r.kind, Group: spec.GroupName})
	}
	return out
}

func newFakeAPI(t testing.TB, machines int) *fakeAPI {
	t.Helper()
	f := &fakeAPI{objects: map[string][][]byte{}}
	now := time.Now()
	for i := range machines {
		g := grow(t, i, now)
		for _, r := range fakeResources {
			f.objects[r.Kind] = append(f.objects[r.Kind], g.objects(t, r.Kind)...)
		}
	}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodGet {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.writes = append(f.writes, fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, body))
		f.mu.Unlock()
		w.WriteHeader(http.StatusForbidden)
		return
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group, rest := "", path[1:]
	if path[0] == "apis" && len(path) > 2 {
		group, rest = path[1], path[2:]
	}
	switch {
	case r.URL.Path == "/api":
		answer(w, metav1.APIVersions{Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		answer(w, groups())
	case len(rest) == 1: // the resources of a group's version
		list := metav1.APIResourceList{GroupVersion: strings.TrimPrefix(group+"/"+rest[0], "/")}
		for _, res := range fakeResources {
			if res.Group == group {
				res.Namespaced = true
				list.APIResources = append(list.APIResources, res)
			}
		}
		answer(w, list)
	case len(rest) == 2 && slices.ContainsFunc(preparedBy(), func(p preparation) bool { return p.resource.Resource == rest[1] }):
		f.show(w, r, "PartialObjectMetadata", metav1.SchemeGroupVersion.String()) // of which there are none
	case len(rest) == 2:
		i := slices.IndexFunc(fakeResources, func(res metav1.APIResource) bool { return res.Group == group && res.Name == rest[1] })
		if i < 0 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		f.show(w, r, fakeResources[i].Kind, strings.TrimPrefix(group+"/"+rest[0], "/"))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func groups() metav1.APIGroupList {
	var l metav1.APIGroupList
	for _, g := range [][2]string{{spec.GroupName, spec.GroupVersion().Version}, {"apps", "v1"}} {
		v := metav1.GroupVersionForDiscovery{GroupVersion: g[0] + "/" + g[1], Version: g[1]}
		l.Groups = append(l.Groups, metav1.APIGroup{Name: g[0], Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return l
}

func answer(w http.ResponseWriter, o any) { _ = json.NewEncoder(w).Encode(o) }

// show lists or watches. A watch without the objects that there are has
// nothing to tell.
func (f *fakeAPI) show(w http.ResponseWriter, r *http.Request, kind, apiVersion string) {
	q := r.URL.Query()
	if q.Get("watch") == "" {
		fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"100000000"},"items":[`, kind, apiVersion)
		_, _ = w.Write(bytes.Join(f.objects[kind], []byte(",")))
		fmt.Fprint(w, "]}")
		return
	}
	if q.Get("sendInitialEvents") == "true" {
		for _, o := range f.objects[kind] {
			fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":%s}\n", o)
		}
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"100000000","annotations":{%q:"true"}}}}`+"\n",
			kind, apiVersion, metav1.InitialEventsAnnotationKey)
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// written are the requests that would have changed something.
func (f *fakeAPI) written() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.writes)
}
