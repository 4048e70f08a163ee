package controller

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"slices"

	"github.com/vmop/sdk/vmop/names"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observe returns nil if the machine does not exist.
func (k *machines) observe(l *look) *observed {
	w := machineLook{l}
	stored := subject(l, spec.KindVirtualMachine, &machine{})
	if stored == nil || w.err != nil {
		return nil
	}
	out := &observed{object: stored, now: w.now()}
	vm, err := stored.decode()
	bare := err != nil && stored.DeletionTimestamp != nil
	if bare {
		// It must remain possible to delete it.
		vm, err = metadataOf[spec.VirtualMachine](&stored.stored)
	}
	if err != nil {
		plan := machinekind.Unreadable(stored, stored.status(), err, out.now)
		out.instead = &plan
		return out
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		w.err = fmt.Errorf("random password: %w", err)
		return nil
	}
	s := &out.snapshot
	*s = machinekind.Snapshot{VM: vm, Bare: bare, Authors: stored.authors, Settings: k.settings, Now: out.now, Password: objects.Password(random)}
	s.ConfigMap = one(l, kindConfigMap, w.name, &corev1.ConfigMap{})
	s.Service = one(l, kindService, w.name, &corev1.Service{})
	s.Attachments = w.attachments()
	s.Pods = w.pods(vm, s.Attachments)
	pod := s.Pod()
	s.PortPods = w.portPods(pod)
	w.claims(s)
	if vm.DeletionTimestamp != nil && machinekind.DeletesDisks(vm) {
		s.Mentioned = w.mentioned(vm)
	}
	if machineconfig.MayUseRepository(vm) {
		s.ImageRepository = one(l, kindClaim, names.ImageRepositoryClaim, &corev1.PersistentVolumeClaim{})
	}
	w.secrets(s)
	w.userData(s)
	if name := machinekind.NamedCertificate(vm, pod); name != "" {
		s.Certificate = w.certificate(name)
	}
	for _, n := range machinekind.NeededSecrets(vm, pod) {
		if s.Secrets == nil {
			s.Secrets = map[string]machinekind.SecretState{}
		}
		s.Secrets[n.Name] = w.secretState(n)
	}
	if s.Service == nil && w.err == nil && objects.Service(vm, k.settings, objects.UsedDisplaySecret(vm, s.DisplaySecrets)) != nil {
		// Applying it would take over a service that the cache does not show because it is not
		// ours.
		s.Service = w.readService(w.name)
	}
	s.Pool = w.pool(vm)
	s.Classes, s.ClassProblem = w.classes(vm.Spec.VirtualMachineClassName)
	s.Failures = w.refusals(s.Now)
	return out
}

// attachments returns the attachments of the machine that can be decoded.
func (w machineLook) attachments() []spec.VirtualMachineBlockDeviceAttachment {
	if _, kept := w.kinds[spec.KindAttachment]; !kept {
		return nil
	}
	return attachmentsBy(w.look, byMachine, w.name)
}

func (w machineLook) readService(name string) *corev1.Service {
	s := &corev1.Service{}
	found, err := get(w.ctx, w.live, types.NamespacedName{Namespace: w.namespace, Name: name}, s)
	if w.err = err; !found {
		return nil
	}
	return s
}

// certificate reads the Secret of a certificate, which may have any owner, without keeping its
// contents.
func (w machineLook) certificate(name string) *corev1.Secret {
	if w.err != nil {
		return nil
	}
	s := &corev1.Secret{}
	found, err := get(w.ctx, w.live, types.NamespacedName{Namespace: w.namespace, Name: name}, s)
	if w.err = err; !found {
		return nil
	}
	return machinekind.CondenseCertificate(s)
}

// secretState determines whether a Secret exists, and which types it does not have, without reading
// its data: metadata lacks the type, but the API server can select by it. Where the operator has no
// access, the runner reports what is missing.
func (w machineLook) secretState(n machinekind.NeededSecret) machinekind.SecretState {
	selector := fields.OneTermEqualSelector("metadata.name", n.Name)
	there, asked := w.hasSecret(selector)
	switch {
	case !asked:
		return machinekind.SecretThere
	case !there:
		return machinekind.SecretMissing
	}
	for _, t := range n.Types {
		selector = fields.AndSelectors(selector, fields.OneTermNotEqualSelector("type", t))
	}
	if other, _ := w.hasSecret(selector); other && len(n.Types) > 0 {
		return machinekind.SecretOfOtherType
	}
	return machinekind.SecretThere
}

// hasSecret reports whether the namespace has a selected Secret. asked is false if the operator has
// no access.
func (w machineLook) hasSecret(selector fields.Selector) (there, asked bool) {
	if w.err != nil {
		return false, false
	}
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kindSecret + "List"))
	err := w.live.List(w.ctx, l, client.InNamespace(w.namespace), client.MatchingFieldsSelector{Selector: selector})
	switch {
	case apierrors.IsForbidden(err):
		return false, false
	case err != nil:
		w.err = fmt.Errorf("look for a Secret of %s/%s: %w", w.namespace, w.name, err)
		return false, false
	}
	return len(l.Items) > 0, true
}

// pods returns the pods that matter to the machine: by the name of its next one, by its labels, or
// by one of its claims or those of its attachments.
func (w machineLook) pods(vm *spec.VirtualMachine, attachments []spec.VirtualMachineBlockDeviceAttachment) []corev1.Pod {
	next := objects.PodName(vm.Name)
	pod := one(w.look, kindPod, next, &corev1.Pod{})
	out := w.podsBeside(vm, attachments, next)
	if pod != nil {
		out = append(out, *pod)
		slices.SortFunc(out, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	}
	return out
}

// ownPod returns the pod, of those with the next name or the labels of a machine, that the next
// steps are about, or nil.
func (w machineLook) ownPod(vm *spec.VirtualMachine) *corev1.Pod {
	if vm == nil {
		return nil
	}
	s := machinekind.Snapshot{VM: vm, Pods: w.ownPods(vm.Name)}
	return s.Pod()
}

func (w machineLook) ownPods(name string) []corev1.Pod {
	var l corev1.PodList
	w.list(&l, byInstance, name)
	if pod := one(w.look, kindPod, objects.PodName(name), &corev1.Pod{}); pod != nil {
		l.Items = append(l.Items, *pod)
	}
	return l.Items
}

// podsBeside returns the pods of [machineLook.pods] but for the one with a name.
func (w machineLook) podsBeside(vm *spec.VirtualMachine, attachments []spec.VirtualMachineBlockDeviceAttachment, name string) []corev1.Pod {
	var out []corev1.Pod
	seen := map[string]bool{name: true}
	add := func(p *corev1.Pod) {
		if !seen[p.Name] {
			seen[p.Name] = true
			out = append(out, *p)
		}
	}
	list := func(index, value string) {
		var l corev1.PodList
		w.list(&l, index, value)
		for i := range l.Items {
			add(&l.Items[i])
		}
	}
	list(byInstance, vm.Name)
	for _, claim := range machinekind.UsedClaims(vm, attachments) {
		list(byClaim, claim)
		for _, name := range objects.ClaimMachines(claim) {
			name = objects.PodName(name)
			if seen[name] {
				continue
			}
			if p := w.pod(name); p != nil && slices.Contains(objects.PodClaims(p), claim) {
				add(p)
			}
		}
	}
	slices.SortFunc(out, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (w machineLook) portPods(pod *corev1.Pod) []corev1.Pod {
	var out []corev1.Pod
	for _, port := range machinekind.ContendedPorts(pod) {
		if w.err != nil {
			return nil
		}
		var l corev1.PodList
		if err := w.cache.List(w.ctx, &l, client.MatchingFields{byHostPort: port}); err != nil {
			w.err = fmt.Errorf("list pods by host port: %w", err)
		}
		out = append(out, l.Items...)
	}
	slices.SortFunc(out, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func (w machineLook) pod(name string) *corev1.Pod {
	if w.err != nil {
		return nil
	}
	key := types.NamespacedName{Namespace: w.namespace, Name: name}
	if lacks(w.cache, reflect.TypeFor[*corev1.Pod](), key) {
		return nil
	}
	p := &corev1.Pod{}
	found, err := get(w.ctx, w.cache, key, p)
	if w.err = err; !found {
		return nil
	}
	return p
}

// livePod reads a pod at the API server, nil if there is none.
func (k *machines) livePod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	found, err := get(ctx, k.live, types.NamespacedName{Namespace: namespace, Name: name}, p)
	if !found {
		return nil, err
	}
	return machinekind.CondensePod(p), nil
}

// refresh reads at the API server what shows whether the disks of a machine are to be deleted: the
// machine, and its ConfigMap, which belongs to nobody where the machine was deleted without it.
func (k *machines) refresh(ctx context.Context, o *observed) error {
	fresh := &machine{}
	s := &o.snapshot
	key := types.NamespacedName{Namespace: s.VM.Namespace, Name: s.VM.Name}
	found, err := get(ctx, k.live, key, fresh)
	if err != nil {
		return err
	}
	if !found || fresh.UID != s.VM.UID {
		return fmt.Errorf("machine %s is not what it was", key)
	}
	vm, err := fresh.decode()
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{}
	if found, err = get(ctx, k.live, key, cm); err != nil {
		return err
	}
	if s.ConfigMap = nil; found {
		s.ConfigMap = machinekind.CondenseConfigMap(cm)
	}
	o.object, s.VM = fresh, vm
	return nil
}

func (w machineLook) claims(s *machinekind.Snapshot) {
	names := append(machinekind.UsedClaims(s.VM, s.Attachments), objects.SharedClaims(s.VM)...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if c := one(w.look, kindClaim, name, &corev1.PersistentVolumeClaim{}); c != nil {
			s.Claims = append(s.Claims, *c)
		}
	}
}

// mentioned returns the claims created for a machine that another machine refers to.
func (w machineLook) mentioned(vm *spec.VirtualMachine) []string {
	var out []string
	var unknown machineList
	w.list(&unknown, byClaim, anyClaim)
	for _, claim := range machinekind.MadeClaims(vm) {
		l := machineList{}
		w.list(&l, byClaim, claim)
		var sharing machineList
		w.list(&sharing, byShare, claim)
		l.Items = slices.Concat(l.Items, sharing.Items, unknown.Items)
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
			return err != nil || slices.Contains(objects.ClaimNames(other), claim) || slices.Contains(objects.SharedClaims(other), claim)
		}) {
			out = append(out, claim)
		}
	}
	return out
}

func (w machineLook) secrets(s *machinekind.Snapshot) {
	var l corev1.SecretList
	w.list(&l, byInstance, s.VM.Name)
	own := objects.DisplaySecretName(s.VM.Name)
	for i := range l.Items {
		switch {
		case l.Items[i].Labels[names.LabelComponent] == names.ComponentDisplayCertificate:
			s.Certificates = append(s.Certificates, l.Items[i])
		case l.Items[i].Labels[names.LabelComponent] == names.ComponentUserData:
			s.UserData = append(s.UserData, l.Items[i])
		case l.Items[i].Name != own:
			s.DisplaySecrets = append(s.DisplaySecrets, l.Items[i])
		}
	}
	secret := one(w.look, kindSecret, own, &corev1.Secret{})
	switch {
	case secret == nil:
	case instanceLabelled(secret, s.VM.Name):
		s.DisplaySecrets = append(s.DisplaySecrets, *secret)
	default: // it was read because it was in the way
		s.SecretInTheWay = machinekind.CondenseForeign(secret)
	}
	// A name may be taken by an object that no cache shows.
	for machinekind.MakesCertificate(s.VM) {
		free := objects.PickCertificate(s.VM, s.Certificates, s.Now).Free
		other := one(w.look, kindSecret, free, &corev1.Secret{})
		if free == "" || other == nil {
			break
		}
		s.Certificates = append(s.Certificates, *machinekind.CondenseSecret(other))
	}
	byName := func(a, b corev1.Secret) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(s.DisplaySecrets, byName)
	slices.SortFunc(s.Certificates, byName)
}

func (w machineLook) userData(s *machinekind.Snapshot) {
	var holders corev1.ConfigMapList
	w.list(&holders, byInstance, s.VM.Name)
	s.UserDataHolders = holders.Items
	// A name may be taken by an object that no cache shows.
	for w.err == nil {
		next := objects.PickUserData(s.VM, s.UserData, s.UserDataHolders)
		if next.Free == "" {
			break
		}
		if secret := one(w.look, kindSecret, next.Free, &corev1.Secret{}); secret != nil {
			s.UserData = append(s.UserData, *machinekind.CondenseSecret(secret))
			continue
		}
		if next.Holder != nil {
			break
		}
		holder := one(w.look, kindConfigMap, next.Free, &corev1.ConfigMap{})
		if holder == nil {
			break
		}
		s.UserDataHolders = append(s.UserDataHolders, *machinekind.CondenseConfigMap(holder))
	}
	slices.SortFunc(s.UserData, func(a, b corev1.Secret) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.UserDataHolders, func(a, b corev1.ConfigMap) int { return cmp.Compare(a.Name, b.Name) })
}

func instanceLabelled(s *corev1.Secret, vm string) bool {
	for k, v := range secretLabels() {
		if s.Labels[k] != v {
			return false
		}
	}
	return s.Labels[names.LabelInstance] == vm
}

// pool reads the pool that the machine is assigned from. One that cannot be decoded counts as
// missing: the machine goes on without it.
func (w machineLook) pool(vm *spec.VirtualMachine) *spec.VmPool {
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

// pods returns the pods that matter to a machine: the observed one with its next name, others that
// the caches show now, and those known to the turn that share disks with it.
func (t *turn) pods(ctx context.Context, r *reader, s *machinekind.Snapshot) ([]corev1.Pod, error) {
	w := machineLook{&look{reader: r, ctx: ctx, namespace: t.namespace}}
	next := objects.PodName(s.VM.Name)
	out := w.podsBeside(s.VM, s.Attachments, next)
	if w.err != nil {
		return nil, w.err
	}
	for i := range s.Pods {
		if s.Pods[i].Name == next {
			out = append(out, s.Pods[i])
		}
	}
	seen := map[types.UID]bool{}
	for i := range out {
		seen[out[i].UID] = true
	}
	for _, pod := range t.others {
		if !seen[pod.UID] && machinekind.SharesDisks(s.VM, s.Attachments, pod) {
			seen[pod.UID] = true
			t.unshown = t.unshown || labels.SelectorFromSet(podLabels()).Matches(labels.Set(pod.Labels))
			out = append(out, *pod)
		}
	}
	slices.SortFunc(out, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}
