package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// maxPassedOn is how much a machine hands on to its pod, in bytes of keys and values.
// All annotations of a pod have 256 KiB, and what the operator notes must fit.
const maxPassedOn = 64 << 10

// PassedOn are the labels and annotations of a machine that its pod has, too.
//
// Labels are what others select pods by: services, network policies, affinities. All
// are passed on but those with a meaning for Kubernetes, for the operator or for
// programs that delete or change what has them.
//
// Annotations are what programs act upon: a pod with the annotation of a program gets
// containers, roles, networks or devices from it that its author has no right to. By
// Kubernetes' convention such programs use keys with a prefix, and keys without one are
// private to users; runtimes use keys with dots (io.kubernetes.cri-o.Devices). So those
// with neither are passed on, and others if the administrator allows them, but for
// those of Kubernetes and of the operator itself, which no setting can allow.
type PassedOn struct {
	Labels, Annotations map[string]string
}

// PassOn is what a machine passes on. What exceeds 64 KiB is left out, from the last
// key of the alphabet on.
func PassOn(vm *spec.VirtualMachine, a *Allowed) PassedOn {
	var out PassedOn
	room := maxPassedOn
	pick := func(all map[string]string, may func(string) bool) map[string]string {
		var keys []string
		for k := range all {
			if may(k) {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		var some map[string]string
		for _, k := range keys {
			if room -= len(k) + len(all[k]); room < 0 {
				break
			}
			if some == nil {
				some = map[string]string{}
			}
			some[k] = all[k]
		}
		return some
	}
	out.Labels = pick(vm.Labels, func(k string) bool { return !reservedLabel(k) })
	out.Annotations = pick(vm.Annotations, func(k string) bool {
		return !reservedAnnotation(k) && (a.Everything || !strings.ContainsAny(k, "/.") || matches(a.PodAnnotations, k))
	})
	return out
}

// reservedLabel reports whether a label of a machine never reaches its pod.
func reservedLabel(key string) bool {
	switch key {
	case names.LabelName, names.LabelInstance, names.LabelManagedBy, names.LabelComponent: // the operator's own
		return true
	case "pod-template-hash", "pod-template-generation", "controller-revision-hash", "controller-uid", "job-name": // controllers adopt pods by them
		return true
	}
	prefix, _, _ := strings.Cut(key, "/")
	if prefix == "app.kubernetes.io" {
		return false // version, part-of and created-by only describe an object
	}
	// These have a pod changed when it is made: with other containers, or another
	// identity in a cloud.
	return reservedPrefix(key) || under(prefix, "istio.io") || under(prefix, "linkerd.io") || under(prefix, "azure.workload.identity") || under(prefix, "admission.datadoghq.com")
}

// reservedAnnotation reports whether an annotation of a machine never reaches its pod,
// whatever the administrator allows.
func reservedAnnotation(key string) bool { return reservedPrefix(key) }

// reservedPrefix reports whether a key is Kubernetes' (security profiles, networks,
// devices, the autoscaler, what kubectl applied last), the operator's, or that of a
// program that deletes what has its key and is in no manifest of its own.
func reservedPrefix(key string) bool {
	prefix, _, has := strings.Cut(key, "/")
	if !has {
		return false
	}
	for _, domain := range []string{
		"kubernetes.io", "k8s.io", "jdrupes.org",
		"argocd.argoproj.io", "fluxcd.io", "objectset.rio.cattle.io", "kapp.k14s.io", "meta.helm.sh",
	} {
		if under(prefix, domain) {
			return true
		}
	}
	return false
}

func under(prefix, domain string) bool {
	return prefix == domain || strings.HasSuffix(prefix, "."+domain)
}

// passedOnRecord is what a pod notes of what it was given.
type passedOnRecord struct {
	// Digest is that of all keys and values.
	Digest string `json:"digest"`
	// Labels and Annotations are the keys.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// record is the annotation of a pod that has these; empty if there are none.
func (p PassedOn) record() string {
	if len(p.Labels) == 0 && len(p.Annotations) == 0 {
		return ""
	}
	h := sha256.New()
	r := passedOnRecord{Labels: slices.Sorted(maps.Keys(p.Labels)), Annotations: slices.Sorted(maps.Keys(p.Annotations))}
	for _, of := range []struct {
		keys   []string
		values map[string]string
	}{{r.Labels, p.Labels}, {r.Annotations, p.Annotations}} {
		for _, k := range of.keys {
			io.WriteString(h, k+"\x00"+of.values[k]+"\x00")
		}
		h.Write([]byte{0})
	}
	r.Digest = hex.EncodeToString(h.Sum(nil)[:8])
	data, _ := json.Marshal(r) // strings are always encoded
	return string(data)
}

// AddTo gives a pod that is to be made what is passed on. What the pod has stays.
func (p PassedOn) AddTo(pod *corev1.Pod) {
	record := p.record()
	if record == "" {
		return
	}
	for k, v := range p.Labels {
		if _, has := pod.Labels[k]; !has {
			pod.Labels[k] = v
		}
	}
	for k, v := range p.Annotations {
		if _, has := pod.Annotations[k]; !has {
			pod.Annotations[k] = v
		}
	}
	pod.Annotations[names.AnnotationPassedOn] = record
}

// Missing are the labels and annotations that a pod must be given, or with nil be deprived of, so
// that it has what its machine passes on now; both are nil if it was given that. It compares with
// the pod's own record: what other writers have set on a pod is left alone, and a program that
// insists on another value is not answered for ever.
func (p PassedOn) Missing(pod *corev1.Pod) (labels, annotations map[string]*string) {
	has, wanted := pod.Annotations[names.AnnotationPassedOn], p.record()
	if has == wanted {
		return nil, nil
	}
	var before passedOnRecord
	if json.Unmarshal([]byte(has), &before) != nil {
		before = passedOnRecord{}
	}
	change := func(keys []string, now map[string]string, reserved func(string) bool) map[string]*string {
		out := map[string]*string{}
		for _, k := range keys {
			// Users who may write pods may write records: no reserved key is removed for one.
			if !reserved(k) {
				out[k] = nil
			}
		}
		for k, v := range now {
			out[k] = &v
		}
		return out
	}
	labels = change(before.Labels, p.Labels, reservedLabel)
	annotations = change(before.Annotations, p.Annotations, reservedAnnotation)
	annotations[names.AnnotationPassedOn] = nil
	if record := wanted; record != "" {
		annotations[names.AnnotationPassedOn] = &record
	}
	return labels, annotations
}
