package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds of objects, as in [reconcile.Target].
const (
	kindPod       = "Pod"
	kindClaim     = "PersistentVolumeClaim"
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
	kindService   = "Service"
)

// observed is a snapshot and what it was made of.
type observed struct {
	machinekind.Snapshot
	// stored is the machine as the cache has it.
	stored *machine
	// broken says why there is no snapshot of a machine that exists.
	broken error
	// behind: the caches do not show yet what was written for the machine.
	behind bool
}

// observer makes snapshots.
type observer struct {
	// cache is read; live is the API server, for what the cache may lack.
	cache, live client.Reader
	settings    objects.Settings
	now         func() time.Time
	// steady is since when all caches are fed, zero if they are not.
	steady func() time.Time
}

// observe looks at a machine and all that it depends on. It is nil if there is
// no such machine. Any object that could not be read is an error.
func (o *observer) observe(ctx context.Context, key types.NamespacedName, memory *machineMemory) (*observed, error) {
	stored := &machine{}
	if found, err := get(ctx, o.cache, key, stored); !found {
		return nil, err
	}
	out := &observed{stored: stored}
	w := &look{observer: o, ctx: ctx, namespace: key.Namespace, memory: memory}
	if w.awaits() {
		// Nothing is decoded or decided for what is still to come.
		out.behind = true
		return out, w.err
	}
	if fresh := w.see(object{spec.KindVirtualMachine, key.Name}, stored, &machine{}); fresh == nil && w.err == nil && !w.behind {
		return nil, nil
	} else if u, ok := fresh.(*machine); ok {
		out.stored = u
	}
	vm, err := out.stored.decode()
	bare := err != nil && out.stored.DeletionTimestamp != nil
	if bare {
		// It must be possible to delete it.
		vm, err = out.stored.bare()
	}
	if err != nil {
		out.broken = err
		return out, w.err
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("random password: %w", err)
	}
	s := &out.Snapshot
	*s = machinekind.Snapshot{VM: vm, Bare: bare, Authors: out.stored.authors, Settings: o.settings, Now: o.now(), Password: objects.Password(random)}
	s.Pod = one(w, kindPod, key.Name, &corev1.Pod{})
	s.ConfigMap = one(w, kindConfigMap, key.Name, &corev1.ConfigMap{})
	s.Service = one(w, kindService, key.Name, &corev1.Service{})
	w.pods(s)
	w.portPods(s)
	w.claims(s)
	if vm.DeletionTimestamp != nil && machinekind.DeletesDisks(vm) {
		s.Mentioned = w.mentioned(vm)
	}
	if machineconfig.MayUseRepository(vm) {
		s.ImageRepository = one(w, kindClaim, names.ImageRepositoryClaim, &corev1.PersistentVolumeClaim{})
	}
	w.secrets(s)
	if s.Service == nil && w.err == nil && objects.Service(vm, o.settings, objects.UsedDisplaySecret(vm, s.DisplaySecrets)) != nil {
		// It is going to be applied, which would take over one that the cache
		// does not show because it is not ours.
		s.Service = w.readService(key.Name)
	}
	s.Pool = w.pool(vm)
	for _, f := range memory.failures {
		if s.Now.Sub(f.Last) > failureAge {
			delete(memory.failures, f.Target)
			continue
		}
		s.Failures = append(s.Failures, f)
	}
	slices.SortFunc(s.Failures, func(a, b reconcile.Failure) int { return cmp.Compare(a.Target.String(), b.Target.String()) })
	out.behind = w.behind
	return out, w.err
}

// look is one observation while it is made. After an error it does nothing.
type look struct {
	*observer
	ctx       context.Context
	namespace string
	memory    *machineMemory
	behind    bool
	err       error
}

// awaits reports whether the caches lack something that was just written. What
// they show is forgotten.
func (w *look) awaits() bool {
	for name, wrote := range w.memory.written {
		into := newOf(name.kind)
		if into == nil || !w.mayCome(wrote.at) {
			continue
		}
		found, err := get(w.ctx, w.cache, types.NamespacedName{Namespace: w.namespace, Name: name.name}, into)
		if err != nil {
			w.err = err
			return true
		}
		if !found {
			into = nil
		}
		if !wrote.shown(into) {
			return true
		}
		delete(w.memory.written, name)
	}
	return false
}

// mayCome reports whether the caches may still come to show what was written at a
// time. While they are not fed, as during and after an outage, asking the API server
// for each object instead would only add to its trouble.
func (w *look) mayCome(at time.Time) bool {
	now := w.now()
	if since := w.steady(); since.IsZero() || now.Sub(since) < cacheLag {
		return now.Sub(at) < unfedLag
	}
	return now.Sub(at) < cacheLag
}

// newOf is an empty object of a kind that is cached.
func newOf(kind string) client.Object {
	switch kind {
	case spec.KindVirtualMachine:
		return &machine{}
	case kindPod:
		return &corev1.Pod{}
	case kindClaim:
		return &corev1.PersistentVolumeClaim{}
	case kindConfigMap:
		return &corev1.ConfigMap{}
	case kindSecret:
		return &corev1.Secret{}
	case kindService:
		return &corev1.Service{}
	}
	return nil
}

// get reads an object; absent is no error.
func get(ctx context.Context, from client.Reader, key types.NamespacedName, into client.Object) (bool, error) {
	err := from.Get(ctx, key, into)
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	}
	return false, fmt.Errorf("read %T %s: %w", into, key, err)
}

// see judges what the cache has of an object, nil for nothing. It returns the
// object, from the API server into fresh if the cache is not to be believed.
func (w *look) see(name object, cached, fresh client.Object) client.Object {
	if wrote, ok := w.memory.written[name]; ok {
		switch {
		case wrote.shown(cached):
			delete(w.memory.written, name)
		case w.mayCome(wrote.at):
			w.behind = true
			return cached
		default:
			// It may have been deleted before it was to be seen.
			delete(w.memory.written, name)
			w.memory.doubt(name)
		}
	}
	if !w.memory.doubts[name] {
		return cached
	}
	if cached != nil && name.kind != spec.KindVirtualMachine {
		delete(w.memory.doubts, name)
		return cached
	}
	found, err := get(w.ctx, w.live, types.NamespacedName{Namespace: w.namespace, Name: name.name}, fresh)
	switch {
	case err != nil:
		w.err = err
		return nil
	case !found:
		delete(w.memory.doubts, name)
		return nil
	case name.kind == spec.KindVirtualMachine:
		delete(w.memory.doubts, name)
	}
	// An object without our labels stays in doubt: no cache will show it.
	return fresh
}

// one reads an object by its name.
func one[T interface {
	comparable
	client.Object
}](w *look, kind, name string, into T) T {
	var none T
	if w.err != nil {
		return none
	}
	found, err := get(w.ctx, w.cache, types.NamespacedName{Namespace: w.namespace, Name: name}, into)
	if err != nil {
		w.err = err
		return none
	}
	var cached client.Object
	if found {
		cached = into
	}
	fresh, ok := into.DeepCopyObject().(T)
	if !ok {
		return none
	}
	if seen, ok := w.see(object{kind, name}, cached, fresh).(T); ok {
		return seen
	}
	return none
}

// readService reads a service that may be anybody's.
func (w *look) readService(name string) *corev1.Service {
	s := &corev1.Service{}
	found, err := get(w.ctx, w.live, types.NamespacedName{Namespace: w.namespace, Name: name}, s)
	if w.err = err; !found {
		return nil
	}
	return s
}

// list reads the objects that an index has.
func (w *look) list(into client.ObjectList, index, value string) {
	if w.err != nil {
		return
	}
	if err := w.cache.List(w.ctx, into, client.InNamespace(w.namespace), client.MatchingFields{index: value}); err != nil {
		w.err = fmt.Errorf("list %T by %s: %w", into, index, err)
	}
}

// pods finds further pods that matter to the machine's disks.
func (w *look) pods(s *machinekind.Snapshot) {
	seen := map[types.UID]bool{}
	add := func(p *corev1.Pod) {
		if p.Name != s.VM.Name && !seen[p.UID] {
			seen[p.UID] = true
			s.OtherPods = append(s.OtherPods, *p)
		}
	}
	list := func(index, value string) {
		var l corev1.PodList
		w.list(&l, index, value)
		for i := range l.Items {
			add(&l.Items[i])
		}
	}
	list(byInstance, s.VM.Name)
	for _, claim := range objects.ClaimNames(s.VM) {
		list(byClaim, claim)
		for _, name := range objects.ClaimMachines(claim) {
			if p := w.pod(name); p != nil && slices.Contains(objects.PodClaims(p), claim) {
				add(p)
			}
		}
	}
	slices.SortFunc(s.OtherPods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
}

// portPods finds who has the ports of a node that a pod waits for.
func (w *look) portPods(s *machinekind.Snapshot) {
	for _, port := range machinekind.ContendedPorts(s.Pod) {
		if w.err != nil {
			return
		}
		var l corev1.PodList
		if err := w.cache.List(w.ctx, &l, client.MatchingFields{byHostPort: port}); err != nil {
			w.err = fmt.Errorf("list pods by host port: %w", err)
		}
		s.PortPods = append(s.PortPods, l.Items...)
	}
	slices.SortFunc(s.PortPods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// pod is a pod of the cache, nil if there is none.
func (w *look) pod(name string) *corev1.Pod {
	if w.err != nil {
		return nil
	}
	p := &corev1.Pod{}
	found, err := get(w.ctx, w.cache, types.NamespacedName{Namespace: w.namespace, Name: name}, p)
	if w.err = err; !found {
		return nil
	}
	return p
}

// livePod reads a pod at the API server, nil if there is none.
func (o *observer) livePod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	found, err := get(ctx, o.live, types.NamespacedName{Namespace: namespace, Name: name}, p)
	if !found {
		return nil, err
	}
	return machinekind.CondensePod(p), nil
}

// refresh reads the machine of an observation at the API server.
func (o *observer) refresh(ctx context.Context, out *observed) error {
	fresh := &machine{}
	key := types.NamespacedName{Namespace: out.VM.Namespace, Name: out.VM.Name}
	found, err := get(ctx, o.live, key, fresh)
	if err != nil {
		return err
	}
	if !found || fresh.UID != out.VM.UID {
		return fmt.Errorf("machine %s is not what it was", key)
	}
	vm, err := fresh.decode()
	if err != nil {
		return err
	}
	out.stored, out.VM = fresh, vm
	return nil
}

func (w *look) claims(s *machinekind.Snapshot) {
	names := objects.ClaimNames(s.VM)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if c := one(w, kindClaim, name, &corev1.PersistentVolumeClaim{}); c != nil {
			s.Claims = append(s.Claims, *c)
		}
	}
}

// mentioned are the claims made for a machine that another one has in its manifest.
func (w *look) mentioned(vm *spec.VirtualMachine) []string {
	var out []string
	var unknown machineList
	w.list(&unknown, byClaim, anyClaim)
	for _, claim := range machinekind.MadeClaims(vm) {
		l := machineList{}
		w.list(&l, byClaim, claim)
		l.Items = append(l.Items, unknown.Items...)
		for _, name := range objects.ClaimMachines(claim) {
			m := &machine{}
			found, err := get(w.ctx, w.cache, types.NamespacedName{Namespace: w.namespace, Name: name}, m)
			if err != nil && w.err == nil {
				w.err = err
			}
			if found {
				l.Items = append(l.Items, *m)
			}
		}
		if slices.ContainsFunc(l.Items, func(m machine) bool {
			if m.Name == vm.Name {
				return false
			}
			other, err := m.decode()
			return err != nil || slices.Contains(objects.ClaimNames(other), claim)
		}) {
			out = append(out, claim)
		}
	}
	return out
}

func (w *look) secrets(s *machinekind.Snapshot) {
	var l corev1.SecretList
	w.list(&l, byInstance, s.VM.Name)
	own := objects.DisplaySecretName(s.VM.Name)
	for i := range l.Items {
		if l.Items[i].Name != own {
			s.DisplaySecrets = append(s.DisplaySecrets, l.Items[i])
		}
	}
	secret := one(w, kindSecret, own, &corev1.Secret{})
	if secret != nil && instanceLabelled(secret, s.VM.Name) {
		s.DisplaySecrets = append(s.DisplaySecrets, *secret)
	}
	slices.SortFunc(s.DisplaySecrets, func(a, b corev1.Secret) int { return cmp.Compare(a.Name, b.Name) })
}

// instanceLabelled reports whether a secret is a display secret of the machine.
func instanceLabelled(s *corev1.Secret, vm string) bool {
	for k, v := range secretLabels() {
		if s.Labels[k] != v {
			return false
		}
	}
	return s.Labels[names.LabelInstance] == vm
}

// pool reads the pool that the machine is assigned from. One that cannot be
// understood is none: the machine goes on without it.
func (w *look) pool(vm *spec.VirtualMachine) *spec.VmPool {
	if w.err != nil || vm.Status.Assignment == nil || vm.Status.Assignment.Pool == "" {
		return nil
	}
	p := &pool{}
	found, err := get(w.ctx, w.cache, types.NamespacedName{Namespace: w.namespace, Name: vm.Status.Assignment.Pool}, p)
	if w.err = err; !found {
		return nil
	}
	decoded, err := p.decode()
	if err != nil {
		return nil
	}
	return decoded
}
