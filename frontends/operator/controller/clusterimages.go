package controller

import (
	"context"
	"fmt"

	diskkind "github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func clusterImages(names func(client.Object) []string) func(context.Context, client.Object) []ctrl.Request {
	return func(_ context.Context, o client.Object) []ctrl.Request { return requests("", names(o)) }
}

func labelled(o client.Object, key string) []string {
	if v := o.GetLabels()[key]; v != "" {
		return []string{v}
	}
	return nil
}

func servedOf(kind string) func(context.Context, client.Object) []ctrl.Request {
	return func(_ context.Context, o client.Object) []ctrl.Request {
		pod, is := o.(*corev1.Pod)
		if !is {
			return nil
		}
		to := objects.ServedBy(pod)
		if to.Kind != kind {
			return nil
		}
		return requests(to.Namespace, []string{to.Name})
	}
}

// clusterSource reads the image of the cluster that a disk or image is a copy of, and the pod that
// serves it.
func (k *disks) clusterSource(w *look, name string, s *diskkind.Snapshot) {
	if _, some := w.kinds[spec.KindClusterImage]; !some {
		s.NoClusterImages = true
		return
	}
	object := &storedClusterImage{}
	if !w.elsewhere("", name, object) {
		return
	}
	from, err := object.decode()
	if err != nil {
		return
	}
	s.SourceClusterImage = from
	in, claim := k.settings.ImageNamespace, objects.ClaimOfDisk(w.name)
	uid := types.UID("")
	if s.Disk != nil {
		uid = s.Disk.UID
	} else {
		uid, claim = s.Image.UID, objects.ClaimOfImage(w.name)
	}
	s.Key = one(w, kindSecret, objects.CopyKeyName(claim), &corev1.Secret{})
	if c := (&corev1.PersistentVolumeClaim{}); w.elsewhere(in, objects.ClaimOfClusterImage(name), c) {
		s.SourceClaim = c
	}
	if p := (&corev1.Pod{}); w.elsewhere(in, objects.ServerPod(name, uid), p) {
		s.Server = p
	}
	if key := (&corev1.Secret{}); w.elsewhere(in, objects.ServerKeyName(name), key) {
		s.ServerKey = key
	}
}

// elsewhere reads an object of another namespace; the look never writes to that namespace.
func (w *look) elsewhere(namespace, name string, into client.Object) bool {
	if w.err != nil {
		return false
	}
	found, err := get(w.ctx, w.cache, types.NamespacedName{Namespace: namespace, Name: name}, into)
	w.err = err
	return found
}

// copiers reads the disks and images that are copies of an image of the cluster, and the pods that
// serve it.
func (k *disks) copiers(w *look, claim string, s *diskkind.Snapshot) {
	s.ServerKey = one(w, kindSecret, objects.ServerKeyName(w.name), &corev1.Secret{})
	seen := map[string]bool{}
	add := func(p *corev1.Pod) {
		if p != nil && objects.ServedBy(p) != (objects.Copier{}) && !seen[p.Name] {
			seen[p.Name] = true
			s.Servers = append(s.Servers, *p)
		}
	}
	for _, o := range k.wanting(w) {
		of, claim := snapshotOf(o), objects.ClaimOfDisk(o.GetName())
		if of.Image != nil {
			claim = objects.ClaimOfImage(o.GetName())
		}
		var key *corev1.Secret
		if found := (&corev1.Secret{}); w.elsewhere(o.GetNamespace(), objects.CopyKeyName(claim), found) {
			key = found
		}
		if to, wanted := diskkind.CopierOf(&of, key); wanted {
			s.Copiers = append(s.Copiers, to)
			add(one(w, kindPod, objects.ServerPod(w.name, to.UID), &corev1.Pod{}))
		}
	}
	for i := range s.Users {
		add(&s.Users[i])
	}
}

func (k *disks) wanting(w *look) []client.Object {
	var d storedDiskList
	var i storedImageList
	for _, l := range []client.ObjectList{&d, &i} {
		if w.err != nil {
			return nil
		}
		if err := w.cache.List(w.ctx, l, client.MatchingFields{byClusterImage: w.name}); err != nil {
			w.err = fmt.Errorf("list %T by image: %w", l, err)
		}
	}
	var out []client.Object
	for n := range d.Items {
		out = append(out, &d.Items[n])
	}
	for n := range i.Items {
		out = append(out, &i.Items[n])
	}
	return out
}
