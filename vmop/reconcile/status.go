package reconcile

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// StatusOf returns the status of an object of a kind as one writer's part. Fields omitted in JSON
// when empty are not the writer's. Whole numbers are int64. A status that cannot be encoded is a
// programming error, and gives an empty part.
func StatusOf(kind string, object metav1.Object, manager string, status any) StatusApply {
	out := StatusApply{Kind: kind, Name: object.GetName(), UID: object.GetUID(), Manager: manager}
	data, err := json.Marshal(status)
	if err == nil {
		_ = kjson.Unmarshal(data, &out.Status)
	}
	return out
}
