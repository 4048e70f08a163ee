package reconcile

import corev1 "k8s.io/api/core/v1"

// mostAtOnce limits a batch: a machine may have a hundred disks, and the API server serves others,
// too.
const mostAtOnce = 8

// Batches divides actions into those that may be executed at once, or in any order, and whose
// failures do not prevent each other. A batch begins when the one before it is done, and not if
// that failed.
//
// A batch has one action, or creates objects of which none needs another. Pods are created alone:
// they use what was created before.
func Batches(actions []Action) [][]Action {
	var out [][]Action
	room := 0
	for _, a := range actions {
		if c, creates := a.(Create); !creates || isPod(c.Object) {
			out, room = append(out, []Action{a}), 0
			continue
		}
		if room == 0 {
			out, room = append(out, nil), mostAtOnce
		}
		last := len(out) - 1
		out[last] = append(out[last], a)
		room--
	}
	return out
}

func isPod(o Object) bool {
	_, is := o.(*corev1.Pod)
	return is
}
