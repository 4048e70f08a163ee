package spec

import (
	"errors"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ParseCoreFraction is the number of a percentage such as 20%, from 1 to 100; the
// empty text is 0.
func ParseCoreFraction(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	digits, percent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	if !percent || err != nil || n < 1 || n > 100 || strconv.Itoa(n) != digits {
		return 0, errors.New("must be a percentage from 1% to 100%, such as 20%")
	}
	return n, nil
}

// NamesCompute reports whether the specification itself has how much CPU or memory the pod
// requests.
func (s *VirtualMachineSpec) NamesCompute() bool {
	if s.Resources == nil {
		return false
	}
	for _, list := range []corev1.ResourceList{s.Resources.Requests, s.Resources.Limits} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if q, given := list[name]; given && !q.IsZero() {
				return true
			}
		}
	}
	return false
}
