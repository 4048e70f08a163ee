// Command go-pools gets a user a machine of a pool and prints the file that
// opens its console: what a user interface does when somebody asks for a
// desktop.
//
//	go run ./examples/go-pools default students ann student >desktop.vv
//	remote-viewer desktop.vv
//
// The arguments are the namespace, the pool, the user and the user's roles,
// which a user interface knows from its login. KUBECONFIG names the cluster.
package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	poolkind "github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

const startTimeout = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "go-pools:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) < 3 {
		return errors.New("usage: go-pools NAMESPACE POOL USER [ROLE...]")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	s := session{client: client, namespace: args[0], pool: args[1], user: poolkind.User{Name: args[2], Roles: args[3:]}}
	name, err := repeat(ctx, s.assign)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "the machine is %s; waiting until it runs\n", name)
	if err := s.await(ctx, name, startTimeout, func(vm *spec.VirtualMachine) bool {
		return spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionRunning)
	}); err != nil {
		return fmt.Errorf("the machine %s does not start: %w", name, err)
	}
	file, err := repeat(ctx, func(ctx context.Context) ([]byte, error) { return s.open(ctx, name) })
	if err != nil {
		return err
	}
	_, err = stdout.Write(file)
	return err
}

// repeat tries again after conflicts with other clients.
func repeat[T any](ctx context.Context, try func(context.Context) (T, error)) (T, error) {
	for {
		if value, err := try(ctx); !apierrors.IsConflict(err) || ctx.Err() != nil {
			return value, err
		}
	}
}

type session struct {
	client          dynamic.Interface
	namespace, pool string
	user            poolkind.User
}

// assign assigns a machine of the pool to the user and starts it.
func (s *session) assign(ctx context.Context) (string, error) {
	machines, err := list[spec.VirtualMachine](ctx, s, machineResource, "")
	if err != nil {
		return "", err
	}
	all, err := list[spec.VmPool](ctx, s, spec.GroupVersion().WithResource(spec.ResourceVMPools), "")
	if err != nil {
		return "", err
	}
	d := poolkind.Assign(poolkind.Request{Namespace: s.namespace, Pool: s.pool, User: s.user, Pools: all, Machines: machines, Now: time.Now()})
	if d.Reason != "" {
		return "", errors.New(d.Message)
	}
	version := ""
	for _, vm := range machines {
		if vm.Name == d.Machine {
			version = vm.ResourceVersion
		}
	}
	if d.Update != nil {
		patch, err := d.Update.Patch()
		if err != nil {
			return "", err
		}
		written, err := s.patch(ctx, machineResource, d.Machine, poolkind.StatusManager, patch, "status")
		if err != nil {
			return "", err
		}
		version = written.GetResourceVersion()
	}
	if d.Start {
		patch, err := poolkind.StartPatch(version)
		if err != nil {
			return "", err
		}
		if _, err := s.patch(ctx, machineResource, d.Machine, "go-pools", patch); err != nil {
			return "", err
		}
	}
	return d.Machine, nil
}

// open returns the file for the viewer.
func (s *session) open(ctx context.Context, name string) ([]byte, error) {
	vm, err := get[spec.VirtualMachine](ctx, s, machineResource, name)
	if err != nil {
		return nil, err
	}
	spec.Default(vm)
	spice := vm.Spec.VM.Display.Spice
	if spice == nil {
		return nil, fmt.Errorf("the machine %s has no SPICE display", name)
	}
	pool, err := get[spec.VmPool](ctx, s, spec.GroupVersion().WithResource(spec.ResourceVMPools), s.pool)
	if err != nil {
		return nil, err
	}
	if a := console.MayOpen(vm, poolkind.ActionsThrough(pool, vm, s.user), s.user.Name); !a.Allowed {
		return nil, errors.New(a.Message)
	}
	secrets, err := list[corev1.Secret](ctx, s, secretResource, labels.FormatLabels(map[string]string{
		names.LabelName: names.AppName, names.LabelInstance: name, names.LabelComponent: names.ComponentDisplaySecret,
	}))
	if err != nil {
		return nil, err
	}
	random := make([]byte, 16)
	rand.Read(random)
	plan, err := console.Open(console.Request{
		VM: vm, User: s.user.Name, Secret: objects.PickDisplaySecret(name, secrets), Now: time.Now(),
		Validity: time.Minute, Candidate: base64.StdEncoding.EncodeToString(random),
	})
	if err != nil {
		return nil, err
	}
	if plan.User != nil {
		if patch, err := plan.User.Patch(); err != nil {
			return nil, err
		} else if _, err := s.patch(ctx, machineResource, name, console.StatusManager, patch, "status"); err != nil {
			return nil, err
		}
	}
	if n := plan.NewPassword; n != nil {
		if patch, err := n.Patch(); err != nil {
			return nil, err
		} else if _, err := s.patch(ctx, secretResource, n.Name, "go-pools", patch); err != nil {
			return nil, err
		}
		// If the machine takes longer, it may still apply the password in time.
		_ = s.await(ctx, name, plan.Wait, func(vm *spec.VirtualMachine) bool {
			return vm.Status.DisplayPasswordSerial >= plan.Serial
		})
	}
	pod, err := get[corev1.Pod](ctx, s, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, name)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, ip := range pod.Status.PodIPs {
		addresses = append(addresses, ip.IP)
	}
	return console.ViewerFile{
		Protocol: console.SPICE, Host: console.Host(spice.Server, addresses, console.IPv4), Port: int(*spice.Port),
		Password: plan.Password, Proxy: spice.ProxyURL, Title: name, DeleteThisFile: true,
	}.Marshal()
}

var (
	machineResource = spec.GroupVersion().WithResource(spec.ResourceVirtualMachines)
	secretResource  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// await waits until the machine is as wanted.
func (s *session) await(ctx context.Context, name string, most time.Duration, wanted func(*spec.VirtualMachine) bool) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		vm, err := get[spec.VirtualMachine](ctx, s, machineResource, name)
		if err != nil || wanted(vm) {
			return err
		}
		w, err := s.client.Resource(machineResource).Namespace(s.namespace).Watch(ctx, metav1.ListOptions{
			FieldSelector: "metadata.name=" + name, ResourceVersion: vm.ResourceVersion,
		})
		if err != nil {
			return err
		}
		select {
		case <-w.ResultChan():
			w.Stop()
		case <-ctx.Done():
			w.Stop()
			return ctx.Err()
		}
	}
}

func (s *session) patch(ctx context.Context, resource schema.GroupVersionResource, name, manager string, patch []byte, subresource ...string) (*unstructured.Unstructured, error) {
	return s.client.Resource(resource).Namespace(s.namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, subresource...)
}

func get[T any](ctx context.Context, s *session, resource schema.GroupVersionResource, name string) (*T, error) {
	o, err := s.client.Resource(resource).Namespace(s.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	value := new(T)
	return value, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, value)
}

func list[T any](ctx context.Context, s *session, resource schema.GroupVersionResource, selector string) ([]T, error) {
	l, err := s.client.Resource(resource).Namespace(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	values := make([]T, len(l.Items))
	for i := range l.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(l.Items[i].Object, &values[i]); err != nil {
			return nil, err
		}
	}
	return values, nil
}
