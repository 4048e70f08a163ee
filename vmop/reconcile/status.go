package reconcile

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// StatusOf is the status of an object of a kind as one writer's part. What is empty
// and omitted in JSON is not the writer's. Whole numbers are int64. A status that JSON cannot hold is an
// error of the program, and gives an empty part.
func StatusOf(kind string, object metav1.Object, manager string, status any) StatusApply {
	out := StatusApply{Kind: kind, Name: object.GetName(), UID: object.GetUID(), Manager: manager}
	data, err := json.Marshal(status)
	if err == nil {
		_ = kjson.Unmarshal(data, &out.Status)
	}
	return out
}
