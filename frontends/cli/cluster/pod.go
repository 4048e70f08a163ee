package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
)

// ErrNoPod reports that a machine has no pod at present.
var ErrNoPod = errors.New("it has no pod now")

// MachinePod returns the present or next pod of a machine.
func (c *Client) MachinePod(ctx context.Context, vm *spec.VirtualMachine) (*corev1.Pod, error) {
	pod, err := c.Pod(ctx, vm.Namespace, objects.PodOf(vm))
	if errors.Is(err, ErrNoPod) {
		return nil, fmt.Errorf("%s/%s: %w", vm.Namespace, vm.Name, ErrNoPod)
	}
	return pod, err
}

// podOf returns the name of the present or next pod of a machine. If the machine was deleted or may
// not be read, it assumes that the pod has not moved.
func (c *Client) podOf(ctx context.Context, namespace, name string) string {
	vm, err := c.Machine(ctx, namespace, name)
	if err != nil {
		return objects.PodName(name)
	}
	return objects.PodOf(vm)
}

// Pod returns a pod by its name; that of a machine is [Client.MachinePod].
func (c *Client) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	o, err := c.dynamic.Resource(pods).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s/%s: %w", namespace, name, ErrNoPod)
	}
	if err != nil {
		return nil, fmt.Errorf("read the pod of %s/%s: %w", namespace, name, err)
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
		return nil, fmt.Errorf("pod %s/%s cannot be understood: %w", namespace, name, err)
	}
	return pod, nil
}

// LogOptions choose what of a log is written.
type LogOptions struct {
	// Follow continues until the runner ends.
	Follow bool
	// Tail is the number of lines from the end; negative means all.
	Tail int
	// Since omits older lines; 0 omits nothing.
	Since time.Duration
}

// Log writes the log of a machine's runner. For a pod that has not started, the error says what it
// waits for: the API server returns an empty log if no node is assigned, and the node's answer says
// less.
func (c *Client) Log(ctx context.Context, namespace, name string, o LogOptions, w io.Writer) error {
	of := c.podOf(ctx, namespace, name)
	n, err := c.copyLog(ctx, namespace, of, o, w)
	if n > 0 || ctx.Err() != nil {
		return err
	}
	// What was not found may be the pod's node instead of the pod.
	pod, perr := c.Pod(ctx, namespace, of)
	switch {
	case errors.Is(perr, ErrNoPod):
		return fmt.Errorf("%s/%s: %w", namespace, name, ErrNoPod)
	case err == nil && perr != nil:
		return perr
	}
	if perr != nil {
		return err
	}
	if why := machine.WaitsFor(pod); why != "" {
		return fmt.Errorf("%s/%s has no log yet: %s", namespace, name, why)
	}
	return err
}

func (c *Client) copyLog(ctx context.Context, namespace, pod string, o LogOptions, w io.Writer) (int64, error) {
	r := c.rest.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").
		Param("follow", strconv.FormatBool(o.Follow))
	if o.Tail >= 0 {
		r = r.Param("tailLines", strconv.Itoa(o.Tail))
	}
	if o.Since > 0 {
		r = r.Param("sinceSeconds", strconv.FormatInt(int64((o.Since+time.Second-1)/time.Second), 10))
	}
	stream, err := r.Stream(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the log of %s/%s: %w", namespace, pod, err)
	}
	defer stream.Close()
	n, err := io.Copy(w, stream)
	if err != nil {
		return n, fmt.Errorf("read the log of %s/%s: %w", namespace, pod, err)
	}
	return n, nil
}

// Happening is a Kubernetes event about a machine or an object of it.
type Happening struct {
	// Name is that of the event, if it is an object.
	Name string
	// First and Last are when it occurred, Count is how often.
	First time.Time
	Last  time.Time
	Count int
	// Type is Normal or Warning.
	Type string
	// Object is the regarding object, as in Pod/web.
	Object  string
	Reason  string
	Message string
}

// Happenings lists the events about a machine, its pods and the named claims, the oldest first.
func (c *Client) Happenings(ctx context.Context, vm *spec.VirtualMachine, claims []string) ([]Happening, error) {
	about := [][2]string{{spec.KindVirtualMachine, vm.Name}}
	for _, pod := range objects.PodsOf(vm) {
		about = append(about, [2]string{"Pod", pod})
	}
	for _, claim := range claims {
		about = append(about, [2]string{"PersistentVolumeClaim", claim})
	}
	return c.happenings(ctx, vm.Namespace, vm.Name, about)
}

// DiskHappenings lists the events about a disk, its claim and the pod that fills it, the oldest
// first.
func (c *Client) DiskHappenings(ctx context.Context, namespace, name string) ([]Happening, error) {
	claim := spec.VirtualDiskClaimName(name)
	return c.happenings(ctx, namespace, name, [][2]string{
		{spec.KindDisk, name}, {"PersistentVolumeClaim", claim}, {"Pod", objects.ImportPod(claim)},
	})
}

// about has kinds and names.
func (c *Client) happenings(ctx context.Context, namespace, name string, about [][2]string) ([]Happening, error) {
	var out []Happening
	for _, a := range about {
		selector := fields.Set{"involvedObject.kind": a[0], "involvedObject.name": a[1]}.AsSelector().String()
		list, err := c.dynamic.Resource(events).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return nil, fmt.Errorf("list the events of %s/%s: %w", namespace, name, err)
		}
		for i := range list.Items {
			e := &corev1.Event{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, e); err != nil {
				return nil, fmt.Errorf("event %s/%s cannot be understood: %w", namespace, list.Items[i].GetName(), err)
			}
			out = append(out, happening(e))
		}
	}
	slices.SortStableFunc(out, func(a, b Happening) int { return a.Last.Compare(b.Last) })
	return out, nil
}

// happening takes the times from where the event's writer put them: there are an old and a new
// style.
func happening(e *corev1.Event) Happening {
	h := Happening{
		Name:  e.Name,
		First: e.FirstTimestamp.Time, Last: e.LastTimestamp.Time, Count: max(int(e.Count), 1),
		Type: e.Type, Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Reason: e.Reason, Message: e.Message,
	}
	if h.First.IsZero() {
		h.First = e.EventTime.Time
	}
	if h.First.IsZero() {
		h.First = e.CreationTimestamp.Time
	}
	if e.Series != nil {
		h.Count, h.Last = int(e.Series.Count), e.Series.LastObservedTime.Time
	}
	if h.Last.IsZero() {
		h.Last = h.First
	}
	return h
}
