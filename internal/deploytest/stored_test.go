package deploytest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

const storedNamespace = "stored"

// storedObject is something that VM-Operator's definition takes and vmop's refuses
// to create.
type storedObject struct {
	kind, name, spec string
	// bad is a merge patch of the field to another value that is refused; empty if
	// there is none. good is one to a value that is right.
	bad, good  string
	atCreation string // what its refusal says
}

var storedObjects = []storedObject{
	{spec.KindVirtualMachine, "more-cpus", "{vm: {state: Running, maximumCpus: 2, currentCpus: 4}}",
		"{vm: {currentCpus: 5}}", "{vm: {currentCpus: 2}}", "currentCpus must not be greater than maximumCpus"},
	{spec.KindVirtualMachine, "more-cpus-still", "{vm: {state: Running, maximumCpus: 2, currentCpus: 4}}",
		"{vm: {maximumCpus: 3}}", "{vm: {maximumCpus: 4}}", "currentCpus must not be greater than maximumCpus"},
	{spec.KindVirtualMachine, "more-ram", "{vm: {state: Running, maximumCpus: 1, maximumRam: 1Gi, currentRam: 2Gi}}",
		"{vm: {currentRam: 3Gi}}", "{vm: {currentRam: 1Gi}}", "currentRam must not be greater than maximumRam"},
	{spec.KindVirtualMachine, "more-than-the-default", "{vm: {state: Running, maximumCpus: 1, currentRam: 2Gi}}",
		"{vm: {maximumRam: 1500Mi}}", "{vm: {maximumRam: 2Gi}}", "currentRam must not be greater than maximumRam"},
	{spec.KindVirtualMachine, "little-ram", "{vm: {state: Running, maximumCpus: 1, maximumRam: '256'}}",
		"{vm: {maximumRam: '257'}}", "{vm: {maximumRam: 256Mi}}", "maximumRam must be at least 4Mi"},
	{spec.KindVirtualMachine, "no-size", "{vm: {state: Running, maximumCpus: 1, disks: [{cdrom: {image: a.iso}}, {volumeClaimTemplate: {metadata: {name: a}, spec: {}}}]}}",
		"{vm: {disks: [{cdrom: {image: b.iso}}, {volumeClaimTemplate: {metadata: {name: a}, spec: {}}}]}}",
		"{vm: {disks: [{cdrom: {image: b.iso}}, {volumeClaimTemplate: {metadata: {name: a}, spec: {resources: {requests: {storage: 1Gi}}}}}]}}", "each volumeClaimTemplate needs a size"},
	{spec.KindVirtualMachine, "two-of-a-name", "{vm: {state: Running, maximumCpus: 1, disks: [{volumeClaimTemplate: {metadata: {name: a}, spec: {resources: {requests: {storage: 1Gi}}}}}, {volumeClaimTemplate: {metadata: {name: a}, spec: {resources: {requests: {storage: 1Gi}}}}}]}}",
		"{vm: {disks: [{volumeClaimTemplate: {metadata: {name: b}, spec: {resources: {requests: {storage: 1Gi}}}}}, {volumeClaimTemplate: {metadata: {name: b}, spec: {resources: {requests: {storage: 1Gi}}}}}]}}",
		"{vm: {disks: [{volumeClaimTemplate: {metadata: {name: b}, spec: {resources: {requests: {storage: 1Gi}}}}}, {volumeClaimTemplate: {metadata: {name: a}, spec: {resources: {requests: {storage: 1Gi}}}}}]}}", "volumeClaimTemplates must have different metadata.names"},
	{spec.KindVirtualMachine, "9lives", "{vm: {state: Running, maximumCpus: 1}}",
		"", "{vm: {maximumCpus: 2}}", "metadata.name must be a DNS label"},
	{spec.KindVirtualMachine, "with.dot", "{vm: {state: Running, maximumCpus: 1}}",
		"", "{vm: {maximumCpus: 2}}", "metadata.name must be a DNS label"},
	{spec.KindVirtualMachine, "usb", "{vm: {state: Running, maximumCpus: 1, display: {spice: {usbRedirects: 20}}}}",
		"{vm: {display: {spice: {usbRedirects: 21}}}}", "{vm: {display: {spice: {usbRedirects: 14}}}}", "less than or equal to 14"},
	{spec.KindVirtualMachine, "boot", "{vm: {state: Running, maximumCpus: 1, disks: [{cdrom: {image: a.iso}, bootindex: -1}]}}",
		"{vm: {disks: [{cdrom: {image: b.iso}, bootindex: -2}]}}", "{vm: {disks: [{cdrom: {image: b.iso}}]}}", "greater than or equal to 0"},
	{spec.KindVirtualMachine, "mac", "{vm: {state: Running, maximumCpus: 1, networks: [{tap: {mac: 5254.0012.3456}}]}}",
		"{vm: {networks: [{tap: {mac: 5254.0012.3457}}]}}", "{vm: {networks: [{tap: {mac: 52-54-00-12-34-57}}]}}", "should match"},
	{spec.KindVirtualMachine, "no-cpu", "{vm: {state: Running, maximumCpus: 0, currentCpus: 0}}",
		"{vm: {currentCpus: -1}}", "{vm: {maximumCpus: 1, currentCpus: 1}}", "greater than or equal to 1"},
	{spec.KindVirtualMachine, "timeouts", "{vm: {state: Running, maximumCpus: 1, powerdownTimeout: 9999999}}",
		"{vm: {powerdownTimeout: -1}}", "{vm: {powerdownTimeout: 60}}", "less than or equal to 2147483"},
	{spec.KindVirtualMachine, "image", "{image: {source: a/b, repository: c}, vm: {state: Running, maximumCpus: 1}}",
		"{image: {repository: d}}", "{image: {repository: null}}", "give either source, or repository and path"},
	{spec.KindVirtualMachine, "clock", "{vm: {state: Running, maximumCpus: 1, rtcClock: gps}}",
		"{vm: {rtcClock: moon}}", "{vm: {rtcClock: rt}}", "Unsupported value"},
	{spec.KindVirtualMachine, "template", "{runnerTemplate: {source: my.ftl.yaml}, vm: {state: Running, maximumCpus: 1}}",
		"{runnerTemplate: {source: other.ftl.yaml}}", "{runnerTemplate: {source: Standard-VM-latest.ftl.yaml}}", "FreeMarker templates are not executed"},
	{spec.KindVMPool, "no-number", "{retention: P, permissions: []}", "{retention: P1DT}", "{retention: P1D}", "a duration needs a number"},
	{spec.KindVMPool, "leap", "{retention: 2026-12-31T23, permissions: []}", "{retention: 2026-12-31}", "{retention: \"2026-12-31T23:59:59+0100\"}", "should match"},
}

func (o *storedObject) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": decoded(t, o.spec)}}
	u.SetGroupVersionKind(spec.GroupVersion().WithKind(o.kind))
	u.SetNamespace(storedNamespace)
	u.SetName(o.name)
	return u
}

func (o *storedObject) client(c dynamic.Interface) dynamic.ResourceInterface {
	resource := spec.ResourceVirtualMachines
	if o.kind == spec.KindVMPool {
		resource = spec.ResourceVMPools
	}
	return c.Resource(spec.GroupVersion().WithResource(resource)).Namespace(storedNamespace)
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var u unstructured.Unstructured // for its numbers
	if err := json.Unmarshal(fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "X", "spec": %s}`, data), &u); err != nil {
		t.Fatal(err)
	}
	return u.Object["spec"].(map[string]any)
}

func dynamicClient(t *testing.T, cp *controlplane.ControlPlane) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// storeForeign stores them, while VM-Operator's definitions are in force.
func storeForeign(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	c := dynamicClient(t, cp)
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": storedNamespace}}}
	if _, err := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range storedObjects {
		o := &storedObjects[i]
		if _, err := o.client(c).Create(t.Context(), o.object(t), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// checkForeign looks at them while vmop's definitions are in force: they stay
// manageable, and what is wrong with them can be corrected and not made worse.
func checkForeign(t *testing.T, cp *controlplane.ControlPlane) {
	c := dynamicClient(t, cp)
	ctx := t.Context()
	// An API server takes a moment to judge by a new definition.
	refusedYet := func(o *storedObject) error {
		again := o.object(t)
		again.SetName(o.name[:1] + "-" + o.name)
		if strings.Contains(o.atCreation, "metadata.name") {
			again.SetName("1" + o.name)
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			_, err := o.client(c).Create(ctx, again, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil || time.Now().After(deadline) {
				return err
			}
		}
	}
	for i := range storedObjects {
		o := &storedObjects[i]
		t.Run(o.name, func(t *testing.T) {
			at := o.client(c)
			patch := func(what string) error {
				data, err := json.Marshal(map[string]any{"spec": decoded(t, what)})
				if err != nil {
					t.Fatal(err)
				}
				_, err = at.Patch(ctx, o.name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "somebody"})
				return err
			}
			if err := refusedYet(o); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), o.atCreation) {
				t.Errorf("created anew: %v", err)
			}
			other := "{loginOnAssignment: true}"
			if o.kind == spec.KindVirtualMachine {
				other = "{guestShutdownStops: true, vm: {powerdownTimeout: 30}}"
				if o.name == "timeouts" {
					other = "{guestShutdownStops: true}"
				}
				status := o.object(t)
				delete(status.Object, "spec")
				status.Object["status"] = map[string]any{"phase": spec.PhaseStopped}
				if _, err := at.ApplyStatus(ctx, o.name, status, metav1.ApplyOptions{FieldManager: names.OperatorStatusManager}); err != nil {
					t.Errorf("status: %v", err)
				}
				// As the manager and the runner of VM-Operator write it.
				if _, err := at.Patch(ctx, o.name, types.JSONPatchType, []byte(`[{"op": "replace", "path": "/status", "value": {"cpus": 1}}]`), metav1.PatchOptions{}, "status"); err != nil {
					t.Errorf("status of VM-Operator: %v", err)
				}
				if err := patch("{vm: {state: Stopped}}"); err != nil {
					t.Errorf("stopped: %v", err)
				}
			}
			if err := patch(other); err != nil {
				t.Errorf("another field: %v", err)
			}
			if o.bad != "" {
				if err := patch(o.bad); !apierrors.IsInvalid(err) {
					t.Errorf("worse: %v", err)
				}
			}
			if err := patch(o.good); err != nil {
				t.Errorf("corrected: %v", err)
			}
		})
	}
}
