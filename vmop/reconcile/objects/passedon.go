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

// maxPassedOn limits the labels and annotations that a machine passes on to its pod, in bytes of
// keys and values. All annotations of a pod have 256 KiB, and the operator's must fit.
const maxPassedOn = 64 << 10

// PassedOn are the labels and annotations of a machine that its pod has, too.
//
// Other objects select pods by labels: services, network policies, affinities. All are passed on
// except those with a meaning for Kubernetes, for the operator or for programs that delete or
// change what has them.
//
// Annotations control programs: an annotation may give a pod containers, roles, networks or
// devices that its author has no right to. By Kubernetes' convention such programs use keys with
// a prefix, and keys without one are private to users; runtimes use keys with dots
// (io.kubernetes.cri-o.Devices). So keys with neither are passed on, and others if the
// administrator allows them, except those of Kubernetes and of the operator itself, which no
// setting can allow.
type PassedOn struct {
	Labels, Annotations map[string]string
}

// PassOn returns what a machine passes on. What exceeds 64 KiB is left out, from the last key of
// the alphabet on.
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
	case names.LabelName, names.LabelInstance, names.LabelManagedBy, names.LabelComponent:
		return true
	case "pod-template-hash", "pod-template-generation", "controller-revision-hash", "controller-uid", "job-name": // controllers adopt pods by these
		return true
	}
	prefix, _, _ := strings.Cut(key, "/")
	if prefix == "app.kubernetes.io" {
		return false // version, part-of and created-by only describe an object
	}
	// Webhooks change pods with these on creation: other containers, or another identity in a
	// cloud.
	return reservedPrefix(key) || under(prefix, "istio.io") || under(prefix, "linkerd.io") || under(prefix, "azure.workload.identity") || under(prefix, "admission.datadoghq.com")
}

// reservedAnnotation reports whether an annotation of a machine never reaches its pod, whatever
// the administrator allows.
func reservedAnnotation(key string) bool { return reservedPrefix(key) }

// reservedPrefix reports whether a key belongs to Kubernetes (security profiles, networks,
// devices, the autoscaler, kubectl's last applied configuration), to the operator, or to a
// program that deletes objects with its key that are in no manifest of its own.
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

type passedOnRecord struct {
	Digest      string   `json:"digest"`
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

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
	data, _ := json.Marshal(r) // strings always encode
	return string(data)
}

// AddTo adds what is passed on to a new pod. Existing entries stay.
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

// Missing returns the labels and annotations to set on a pod, or with nil to remove, so that it
// has what its machine passes on now; both are nil if it has. It compares with the pod's own
// record: what other writers have set on a pod is left alone, and there is no endless fight with
// a program that insists on another value.
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
			// Users who may write pods may write records: no reserved key is removed because of
			// one.
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
