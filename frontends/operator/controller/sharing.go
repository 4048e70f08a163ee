package controller

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	corev1 "k8s.io/api/core/v1"
)

// sharing lets objects of caches have equal parts in common. A map takes a third of a kilobyte or
// more though it has one entry; most machines ask for the same amounts, and the claims of one have
// the same labels.
type sharing struct {
	mu      sync.Mutex
	amounts map[string]corev1.ResourceList
	texts   map[string]map[string]string
}

// mostShared limits what is remembered to be shared. With more than that it is forgotten, and
// objects that come later share with each other only.
const mostShared = 1024

func newSharing() *sharing {
	return &sharing{amounts: map[string]corev1.ResourceList{}, texts: map[string]map[string]string{}}
}

func (s *sharing) pod(pod *corev1.Pod) *corev1.Pod {
	c := machinekind.CondensePod(pod)
	for i := range c.Spec.Containers {
		s.resources(&c.Spec.Containers[i].Resources)
	}
	for i := range c.Status.ContainerStatuses {
		if r := c.Status.ContainerStatuses[i].Resources; r != nil {
			s.resources(r) // a copy of condensing
		}
	}
	return c
}

// claim has labels and annotations in common, too, with the other claims of its machine, which come
// one after the other.
func (s *sharing) claim(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c := machinekind.CondenseClaim(claim)
	c.Labels, c.Annotations = s.text(c.Labels), s.text(c.Annotations)
	c.Spec.Resources.Requests = s.list(c.Spec.Resources.Requests)
	c.Status.Capacity = s.list(c.Status.Capacity)
	return c
}

func (s *sharing) resources(r *corev1.ResourceRequirements) {
	r.Requests, r.Limits = s.list(r.Requests), s.list(r.Limits)
}

func (s *sharing) text(m map[string]string) map[string]string {
	var key []byte
	for _, k := range slices.Sorted(maps.Keys(m)) {
		key = strconv.AppendQuote(strconv.AppendQuote(key, k), m[k])
	}
	return shared(s, s.texts, string(key), m)
}

func (s *sharing) list(list corev1.ResourceList) corev1.ResourceList {
	key := ""
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount := list[name]
		key += string(name) + "=" + amount.String() + "," // none of them is in a name or an amount
	}
	return shared(s, s.amounts, key, list)
}

func shared[M ~map[K]V, K comparable, V any](s *sharing, known map[string]M, key string, m M) M {
	if len(m) == 0 {
		return m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, is := known[key]; is {
		return one
	}
	if len(known) >= mostShared {
		clear(known)
	}
	known[key] = m
	return m
}
