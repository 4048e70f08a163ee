package crdtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/vmop/spec"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	machines    = spec.GroupVersion().WithResource(spec.ResourceVirtualMachines)

	// resources says where objects of a kind are.
	resources = resourcesOfKinds()
)

func resourcesOfKinds() map[string]schema.GroupVersionResource {
	out := map[string]schema.GroupVersionResource{"Secret": {Version: "v1", Resource: "secrets"}}
	for _, k := range spec.Kinds() {
		out[k.Name] = spec.GroupVersion().WithResource(k.Plural)
	}
	return out
}

// examples are the manifests that users start from.
const examples = "../../examples/*/*.yaml"

// cluster is the API server that all tests share, with the definitions.
var cluster *controlplane.ControlPlane

// installed is what happened when the definitions were made.
var installed struct {
	names    []string
	warnings *warnings
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx := context.Background()
	var err error
	if cluster, err = controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr}); err != nil {
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

// install makes the definitions and waits until their resources are served.
func install(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var client dynamic.Interface
	var err error
	if client, installed.warnings, err = connect(); err != nil {
		return err
	}
	files, err := filepath.Glob("../../deploy/crds/*.yaml")
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no definitions in deploy/crds; run `make generate` (%w)", err)
	}
	for _, file := range files {
		objects, err := readObjects(file)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if _, err := client.Resource(definitions).Create(ctx, object, strict); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			installed.names = append(installed.names, object.GetName())
		}
	}
	for _, resource := range plurals() {
		err := until(ctx, func() error {
			_, err := client.Resource(spec.GroupVersion().WithResource(resource)).List(ctx, metav1.ListOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("%s are not served: %w", resource, err)
		}
	}
	return nil
}

// strict makes unknown and duplicate fields errors.
var strict = metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, FieldManager: "test"}

// warnings collects what the API server warns of.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts
}

func connect() (dynamic.Interface, *warnings, error) {
	config, seen := cluster.Config(), &warnings{}
	config.WarningHandler = seen
	client, err := dynamic.NewForConfig(config)
	return client, seen, err
}

// newClient returns a client for one test, which a warning fails.
func newClient(t *testing.T) dynamic.Interface {
	t.Helper()
	client, seen, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if texts := seen.all(); len(texts) > 0 {
			t.Errorf("the API server warns: %q", texts)
		}
	})
	return client
}

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T, client dynamic.Interface) string {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "test-"},
	}}
	made, err := client.Resource(namespaces).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.GetName()
}

// until repeats until there is no error or the context ends.
func until(ctx context.Context, try func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// readObjects reads the objects of a YAML file as kubectl does.
func readObjects(file string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data))); ; {
		document := make([]byte, len(data)+1)
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		object, err := decodeObject(document[:n])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func decodeObject(document []byte) (*unstructured.Unstructured, error) {
	data, err := sigsyaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if string(data) == "null" {
		return object, nil
	}
	return object, object.UnmarshalJSON(data)
}

// toObject gives a typed object the form that the client sends.
func toObject(value any) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(data)
}

// fromObject is the reverse of toObject.
func fromObject[T any](object *unstructured.Unstructured) (*T, error) {
	data, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	value := new(T)
	return value, json.Unmarshal(data, value)
}
