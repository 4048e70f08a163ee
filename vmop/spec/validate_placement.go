package spec

import (
	"github.com/vmop/sdk/vmop/limits"
	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePlacement has the rules of Kubernetes for the fields of pods of these names,
// so that what is wrong is said of the manifest and not of a pod that cannot be made.
func validatePlacement(s *VirtualMachineSpec, path spot) field.ErrorList {
	var errs field.ErrorList
	if s.NodeName != "" {
		errs = append(errs, invalid(path.Child("nodeName"), s.NodeName, isSubdomain)...)
	}
	errs = append(errs, validateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	if s.Affinity != nil {
		errs = append(errs, validateAffinity(s.Affinity, path.Child("affinity"))...)
	}
	for i := range s.Tolerations {
		errs = append(errs, validateToleration(&s.Tolerations[i], path.Child("tolerations").Index(i))...)
	}
	type spread struct {
		key  string
		when corev1.UnsatisfiableConstraintAction
	}
	seen := map[spread]bool{}
	for i := range s.TopologySpreadConstraints {
		c, at := &s.TopologySpreadConstraints[i], path.Child("topologySpreadConstraints").Index(i)
		errs = append(errs, validateSpread(c, at)...)
		if key := (spread{c.TopologyKey, c.WhenUnsatisfiable}); seen[key] {
			errs = append(errs, duplicateAt(at.Child("topologyKey"), c.TopologyKey+" with whenUnsatisfiable "+string(c.WhenUnsatisfiable)))
		} else {
			seen[key] = true
		}
	}
	if t := s.TerminationGracePeriodSeconds; t != nil {
		errs = append(errs, inRange(path.Child("terminationGracePeriodSeconds"), int64(*t), 0, limits.MaxPowerdownTimeout)...)
	}
	if s.PriorityClassName != "" {
		errs = append(errs, invalid(path.Child("priorityClassName"), s.PriorityClassName, isSubdomain)...)
	}
	return errs
}

func validateToleration(t *corev1.Toleration, path spot) field.ErrorList {
	var errs field.ErrorList
	if t.Key != "" {
		errs = append(errs, invalid(path.Child("key"), t.Key, isQualifiedName)...)
	} else if t.Operator != corev1.TolerationOpExists {
		errs = append(errs, invalidAt(path.Child("operator"), t.Operator, "must be Exists where there is no key, which means all taints"))
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual, corev1.TolerationOpLt, corev1.TolerationOpGt:
		errs = append(errs, invalid(path.Child("value"), t.Value, isLabelValue)...)
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, invalidAt(path.Child("value"), t.Value, "must be empty where operator is Exists, which is about any value"))
		}
	default:
		errs = append(errs, oneOf(path.Child("operator"), t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt)...)
	}
	if t.Effect != "" {
		errs = append(errs, oneOf(path.Child("effect"), t.Effect,
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, invalidAt(path.Child("effect"), t.Effect, "must be NoExecute where tolerationSeconds is given"))
	}
	return errs
}

func validateSpread(c *corev1.TopologySpreadConstraint, path spot) field.ErrorList {
	var errs field.ErrorList
	if c.MaxSkew < 1 {
		errs = append(errs, invalidAt(path.Child("maxSkew"), c.MaxSkew, "must be 1 or more"))
	}
	if c.TopologyKey == "" {
		errs = append(errs, requiredAt(path.Child("topologyKey"), "the label of nodes, such as kubernetes.io/hostname, whose values they are spread over"))
	} else {
		errs = append(errs, invalid(path.Child("topologyKey"), c.TopologyKey, isQualifiedName)...)
	}
	errs = append(errs, oneOf(path.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
	if m := c.MinDomains; m != nil {
		if *m < 1 {
			errs = append(errs, invalidAt(path.Child("minDomains"), *m, "must be 1 or more"))
		}
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			errs = append(errs, invalidAt(path.Child("minDomains"), *m, "is only for whenUnsatisfiable DoNotSchedule"))
		}
	}
	for _, p := range []struct {
		name   string
		policy *corev1.NodeInclusionPolicy
	}{{"nodeAffinityPolicy", c.NodeAffinityPolicy}, {"nodeTaintsPolicy", c.NodeTaintsPolicy}} {
		if p.policy != nil {
			errs = append(errs, oneOf(path.Child(p.name), *p.policy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)...)
		}
	}
	errs = append(errs, metav1validation.ValidateLabelSelector(c.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, path.Child("labelSelector").path)...)
	for i, key := range c.MatchLabelKeys {
		at := path.Child("matchLabelKeys").Index(i)
		errs = append(errs, invalid(at, key, isQualifiedName)...)
		if selects(c.LabelSelector, key) {
			errs = append(errs, invalidAt(at, key, "must not be in labelSelector, too"))
		}
	}
	if len(c.MatchLabelKeys) > 0 && c.LabelSelector == nil {
		errs = append(errs, forbiddenAt(path.Child("matchLabelKeys"), "must not be given where there is no labelSelector"))
	}
	return errs
}
