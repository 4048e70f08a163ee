package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

func requests(namespace string, names []string) []ctrl.Request {
	var out []ctrl.Request
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			out = append(out, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	return out
}

func retries() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, maxRetry)
}

// eventSource is the reporting controller of events.
const eventSource = "vm-operator"
