package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// stored is an object of our API group as packed JSON, which is decoded on use. That takes a small
// part of the memory of maps or structures, and reading it never fails, so that one object that the
// types cannot hold does not break a list.
type stored struct {
	// ObjectMeta has name, version and deletion; labels and annotations are in the JSON only.
	metav1.ObjectMeta
	// data lacks the managed fields. It is never modified.
	data packed
	// authors is what decisions need of the managed fields.
	authors machinekind.Authors
}

type (
	machine struct {
		stored
		// phase and waits are for the metrics, the others for the indexes: pool is the one it is
		// assigned from, foreign and shared are its claims that cannot be derived from its name,
		// disks are those of its claims that are VirtualDisks.
		phase, pool, class string
		waits              []wait
		foreign            []string
		shared             []string
		disks              []string
		// pools are those that it names; connected reports whether a user is at its console. Both
		// are for the pools' sizes.
		pools     []string
		connected bool
		// panics counts those of its guest since it was started.
		panics int64
	}
	machineList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []machine `json:"items"`
	}

	pool     = kept[spec.VmPool]
	poolList = keptList[spec.VmPool]
)

// kept is an object of a kind of which nothing is read without decoding it. T is its type, which
// has the kind's name.
type kept[T any] struct{ stored }

type keptList[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []kept[T] `json:"items"`
}

// GetObjectKind implements [runtime.Object]: the scheme knows the kind.
func (s *stored) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements [runtime.Object].
func (m *machine) DeepCopyObject() runtime.Object {
	c := *m
	m.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.waits, c.foreign, c.shared, c.pools, c.disks = slices.Clone(m.waits), slices.Clone(m.foreign), slices.Clone(m.shared), slices.Clone(m.pools), slices.Clone(m.disks)
	return &c
}

// DeepCopyObject implements [runtime.Object].
func (k *kept[T]) DeepCopyObject() runtime.Object {
	c := *k
	k.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements [runtime.Object]. The items are never modified.
func (l *machineList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	return &c
}

// DeepCopyObject implements [runtime.Object]. The items are never modified.
func (l *keptList[T]) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	return &c
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts any object that has metadata.
func (s *stored) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	var m metav1.ObjectMeta
	var managed []metav1.ManagedFieldsEntry
	if raw, ok := fields["metadata"]; ok {
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		managed, m.ManagedFields = m.ManagedFields, nil
		delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
		short, err := json.Marshal(&m)
		if err != nil {
			return err
		}
		fields["metadata"] = short
	}
	short, err := joined(fields)
	if err != nil {
		return err
	}
	*s = stored{data: pack(short), authors: machinekind.AuthorsOf(managed), ObjectMeta: metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Generation: m.Generation, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}}
	// The end of a list that comes as a watch is marked by an annotation.
	if end, ok := m.Annotations[metav1.InitialEventsAnnotationKey]; ok {
		s.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: end}
	}
	return nil
}

// joined encodes an object whose values are JSON already, which is much cheaper than to encode them
// again.
func joined(fields map[string]json.RawMessage) ([]byte, error) {
	size := len("{}")
	for key, value := range fields {
		size += len(`"":,`) + len(key) + len(value)
	}
	out := append(make([]byte, 0, size), '{')
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), fields[key]...)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *machine) UnmarshalJSON(data []byte) error {
	*m = machine{}
	if err := m.stored.UnmarshalJSON(data); err != nil {
		return err
	}
	// What cannot be decoded here is reported when the machine is reconciled.
	s, whole := m.summarize()
	if a := s.Status.Assignment; a != nil {
		m.pool = a.Pool
	}
	vm := &spec.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	vm.Spec.VM.Disks, vm.Spec.VM.Shares = s.Spec.VM.Disks, s.Spec.VM.Shares
	vm.Spec.BlockDeviceRefs = s.Spec.BlockDeviceRefs
	claims := objects.ClaimNames(vm)
	for _, c := range claims {
		if spec.DiskOfClaim(c) != "" || spec.ImageOfClaim(c) != "" || spec.ClusterImageOfClaim(c) != "" {
			m.disks = append(m.disks, c)
		}
	}
	m.foreign = foreignClaims(m.Name, itself, claims)
	m.shared = objects.SharedClaims(vm)
	for _, c := range m.shared {
		if spec.ImageOfClaim(c) != "" {
			m.disks = append(m.disks, c)
		}
	}
	if !whole {
		m.foreign = append(m.foreign, anyClaim)
	}
	m.class = s.Spec.VirtualMachineClassName
	m.phase, m.pools, m.panics = phaseNamed(s.Status.Phase), s.Spec.Pools, s.Status.GuestPanics
	for _, c := range s.Status.Conditions {
		m.connected = m.connected || c.Type == spec.ConditionConsoleConnected && c.Status == string(metav1.ConditionTrue)
		if w, ok := waitingBy(&c); ok {
			m.waits = append(m.waits, w)
		}
	}
	return nil
}

// summary is what is read of a machine without reconciling it.
type summary struct {
	Spec struct {
		Pools                   []string              `json:"pools"`
		VirtualMachineClassName string                `json:"virtualMachineClassName"`
		BlockDeviceRefs         []spec.BlockDeviceRef `json:"blockDeviceRefs"`
		VM                      struct {
			Disks  []spec.Disk  `json:"disks"`
			Shares []spec.Share `json:"shares"`
		} `json:"vm"`
	} `json:"spec"`
	Status struct {
		Phase       string           `json:"phase"`
		ConsoleUser string           `json:"consoleUser"`
		GuestPanics int64            `json:"guestPanics"`
		Assignment  *spec.Assignment `json:"assignment"`
		Conditions  []condition      `json:"conditions"`
	} `json:"status"`
}

// summary is empty as far as the machine cannot be decoded.
func (m *machine) summary() summary {
	s, _ := m.summarize()
	return s
}

// summarize also reports whether everything it reads was decoded.
func (m *machine) summarize() (s summary, whole bool) {
	text := m.data.text()
	err := spec.CheckQuantities(text)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err == nil
}

// status returns the status as JSON values, nil if there is none.
func (m *machine) status() map[string]any {
	var fields struct {
		Status map[string]any `json:"status"`
	}
	if kjson.Unmarshal(m.data.text(), &fields) != nil {
		return nil
	}
	return fields.Status
}

type decodeError struct {
	kind, namespace, name string
	err                   error
}

func (e *decodeError) Error() string {
	return fmt.Sprintf("%s %s/%s cannot be understood: %v", e.kind, e.namespace, e.name, e.err)
}

func (e *decodeError) Unwrap() error { return e.err }

// decode uses encoding/json, which refuses a number that is too large for its field; apimachinery's
// converters would change it. The name of the type is that of its kind.
func decode[T any](s *stored) (*T, error) {
	out, text := new(T), s.data.text()
	err := spec.CheckQuantities(text)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return nil, &decodeError{reflect.TypeFor[T]().Name(), s.Namespace, s.Name, err}
	}
	return out, nil
}

func (m *machine) decode() (*spec.VirtualMachine, error) {
	return decode[spec.VirtualMachine](&m.stored)
}

func metadataOf[T any](s *stored) (*T, error) {
	var known struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	out := new(T)
	err := json.Unmarshal(s.data.text(), &known)
	if err == nil {
		var data []byte
		if data, err = json.Marshal(known); err == nil {
			err = json.Unmarshal(data, out)
		}
	}
	if err != nil {
		return nil, &decodeError{reflect.TypeFor[T]().Name(), s.Namespace, s.Name, err}
	}
	return out, nil
}

func (k *kept[T]) decode() (*T, error) { return decode[T](&k.stored) }
