package spec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

// validateAffinity has the rules of k8s.io/kubernetes/pkg/apis/core/validation.
func validateAffinity(a *Affinity, path spot) field.ErrorList {
	var errs field.ErrorList
	if n := a.NodeAffinity; n != nil {
		errs = append(errs, validateNodeAffinity(n, path.Child("nodeAffinity"))...)
	}
	if p := a.PodAffinity; p != nil {
		errs = append(errs, validatePodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))...)
	}
	if p := a.PodAntiAffinity; p != nil {
		errs = append(errs, validatePodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))...)
	}
	for _, m := range []struct {
		name     string
		affinity *VirtualMachineAndPodAffinity
	}{{"virtualMachineAndPodAffinity", a.VirtualMachineAndPodAffinity}, {"virtualMachineAndPodAntiAffinity", a.VirtualMachineAndPodAntiAffinity}} {
		if m.affinity == nil {
			continue
		}
		at := path.Child(m.name)
		errs = append(errs, validatePodTerms(m.affinity.RequiredDuringSchedulingIgnoredDuringExecution, nil, at)...)
		for i := range m.affinity.PreferredDuringSchedulingIgnoredDuringExecution {
			t, at := &m.affinity.PreferredDuringSchedulingIgnoredDuringExecution[i], at.Child(preferred).Index(i)
			errs = append(errs, validateWeight(t.Weight, at)...)
			errs = append(errs, validatePodTerm(&t.Term, at.Child("virtualMachineAndPodAffinityTerm"))...)
		}
	}
	return errs
}

func validateWeight(weight int32, path spot) field.ErrorList {
	if weight < 1 || weight > 100 {
		return field.ErrorList{invalidAt(path.Child("weight"), weight, "must be from 1 to 100")}
	}
	return nil
}

func validateNodeAffinity(n *corev1.NodeAffinity, path spot) field.ErrorList {
	var errs field.ErrorList
	if r := n.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		at := path.Child(required, "nodeSelectorTerms")
		if len(r.NodeSelectorTerms) == 0 {
			errs = append(errs, requiredAt(at, "one term or more, of which a node must match one"))
		}
		for i := range r.NodeSelectorTerms {
			errs = append(errs, validateNodeTerm(&r.NodeSelectorTerms[i], true, at.Index(i))...)
		}
	}
	for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		t, at := &n.PreferredDuringSchedulingIgnoredDuringExecution[i], path.Child(preferred).Index(i)
		errs = append(errs, validateWeight(t.Weight, at)...)
		errs = append(errs, validateNodeTerm(&t.Preference, false, at.Child("preference"))...)
	}
	return errs
}

// validateNodeTerm judges a selector of nodes. The values of one that is preferred may
// be any text for Kubernetes.
func validateNodeTerm(t *corev1.NodeSelectorTerm, strict bool, path spot) field.ErrorList {
	var errs field.ErrorList
	for i := range t.MatchExpressions {
		r, at := &t.MatchExpressions[i], path.Child("matchExpressions").Index(i)
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(r.Values) == 0 {
				errs = append(errs, requiredAt(at.Child("values"), "one value or more for operator "+string(r.Operator)))
			}
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				errs = append(errs, forbiddenAt(at.Child("values"), "must not be given for operator "+string(r.Operator)))
			}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			if len(r.Values) != 1 {
				errs = append(errs, requiredAt(at.Child("values"), "exactly one value for operator "+string(r.Operator)))
			}
		default:
			errs = append(errs, oneOf(at.Child("operator"), r.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
				corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)...)
		}
		errs = append(errs, invalid(at.Child("key"), r.Key, isQualifiedName)...)
		for j, v := range r.Values {
			if strict {
				errs = append(errs, invalid(at.Child("values").Index(j), v, isLabelValue)...)
			}
		}
	}
	for i := range t.MatchFields {
		r, at := &t.MatchFields[i], path.Child("matchFields").Index(i)
		if r.Key != metav1.ObjectNameField {
			errs = append(errs, oneOf(at.Child("key"), r.Key, metav1.ObjectNameField)...)
		}
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(r.Values) != 1 {
				errs = append(errs, requiredAt(at.Child("values"), "exactly one value for operator "+string(r.Operator)))
			}
		default:
			errs = append(errs, oneOf(at.Child("operator"), r.Operator, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)...)
		}
		for j, v := range r.Values {
			errs = append(errs, invalid(at.Child("values").Index(j), v, isSubdomain)...)
		}
	}
	return errs
}

func validatePodTerms(all []corev1.PodAffinityTerm, some []corev1.WeightedPodAffinityTerm, path spot) field.ErrorList {
	var errs field.ErrorList
	for i := range all {
		errs = append(errs, validatePodTerm(&all[i], path.Child(required).Index(i))...)
	}
	for i := range some {
		at := path.Child(preferred).Index(i)
		errs = append(errs, validateWeight(some[i].Weight, at)...)
		errs = append(errs, validatePodTerm(&some[i].PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return errs
}

func validatePodTerm(t *corev1.PodAffinityTerm, path spot) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, metav1validation.ValidateLabelSelector(t.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("labelSelector").path)...)
	errs = append(errs, metav1validation.ValidateLabelSelector(t.NamespaceSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("namespaceSelector").path)...)
	for i, n := range t.Namespaces {
		errs = append(errs, invalid(path.Child("namespaces").Index(i), n, isLabel)...)
	}
	for _, l := range []struct {
		name string
		keys []string
	}{{"matchLabelKeys", t.MatchLabelKeys}, {"mismatchLabelKeys", t.MismatchLabelKeys}} {
		at := path.Child(l.name)
		if len(l.keys) > 0 && t.LabelSelector == nil {
			errs = append(errs, forbiddenAt(at, "must not be given where there is no labelSelector"))
			continue
		}
		for i, key := range l.keys {
			errs = append(errs, invalid(at.Index(i), key, isQualifiedName)...)
		}
	}
	for i, key := range t.MatchLabelKeys {
		switch at := path.Child("matchLabelKeys").Index(i); {
		case slices.Contains(t.MismatchLabelKeys, key):
			errs = append(errs, invalidAt(at, key, "must not be in mismatchLabelKeys, too"))
		case selects(t.LabelSelector, key):
			errs = append(errs, invalidAt(at, key, "must not be in labelSelector, too"))
		}
	}
	if t.TopologyKey == "" {
		errs = append(errs, requiredAt(path.Child("topologyKey"), "the label of nodes, such as kubernetes.io/hostname, whose value says what counts as one place"))
	} else {
		errs = append(errs, invalid(path.Child("topologyKey"), t.TopologyKey, isQualifiedName)...)
	}
	return errs
}

func selects(s *metav1.LabelSelector, key string) bool {
	if s == nil {
		return false
	}
	_, is := s.MatchLabels[key]
	return is || slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == key })
}
