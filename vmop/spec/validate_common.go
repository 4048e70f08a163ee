package spec

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func missing(kind string) field.ErrorList {
	return field.ErrorList{field.Required(field.NewPath(kind), "there is no object: the pointer is nil")}
}

func validateNamespace(meta *metav1.ObjectMeta, p paths) field.ErrorList {
	if meta.Namespace == "" {
		return nil
	}
	return invalid(p.at("metadata", "namespace"), meta.Namespace, isLabel)
}

// validateLabels checks keys and values as the API server does for labels.
func validateLabels(labels map[string]string, path spot) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(labels) {
		errs = append(errs, invalid(path.Key(key), key, isQualifiedName)...)
		errs = append(errs, invalid(path.Key(key), labels[key], isLabelValue)...)
	}
	return errs
}

// validateKeys checks the keys of annotations, which may have capitals in their
// prefix.
func validateKeys[V any](m map[string]V, path spot) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(m) {
		errs = append(errs, invalid(path.Key(key), key, func(s string) []string {
			return isQualifiedName(strings.ToLower(s))
		})...)
	}
	return errs
}

func withoutNull(m map[string]*string) map[string]string {
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[key] = ""
		if value != nil {
			out[key] = *value
		}
	}
	return out
}

func validateSubject(user, role string, path spot) field.ErrorList {
	switch {
	case user == "" && role == "":
		return field.ErrorList{requiredAt(path, "give exactly one of user and role; there is none")}
	case user != "" && role != "":
		return field.ErrorList{invalidAt(path, user+", "+role, "give exactly one of user and role; there are both")}
	case user != "":
		return validateLine(user, path.Child("user"))
	}
	return validateLine(role, path.Child("role"))
}

// validateAmount checks an amount of anything: a pod's resources may be counted
// in thousandths.
func validateAmount(q resource.Quantity, path spot) field.ErrorList {
	switch {
	case q.Sign() < 0:
		return field.ErrorList{invalidAt(path, q.String(), "must not be negative")}
	case CompareQuantities(q, *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)) > 0:
		return field.ErrorList{invalidAt(path, q.String(), "must be at most 2^63-1")}
	}
	return nil
}

func validateBytes(q resource.Quantity, path spot) field.ErrorList {
	if q.Sign() <= 0 {
		return field.ErrorList{invalidAt(path, q.String(), "must be greater than zero")}
	}
	if _, ok := wholeBytes(q); !ok {
		return field.ErrorList{invalidAt(path, q.String(), "must be a whole number of bytes of at most 2^63-1; the suffix m means a thousandth, M means 10^6 and Mi 2^20")}
	}
	return nil
}
