package controller

import (
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The sketch of a kind: what one has to write to have another one. This file stands
// for vmop/spec/greeting_types.go; of its definition, testdata/greetings.yaml, a real
// kind has a generated one.

// Greeting is something that is said in its namespace: a ConfigMap has the text.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GreetingSpec   `json:"spec"`
	Status GreetingStatus `json:"status,omitempty"`
}

// GreetingSpec is what is said.
type GreetingSpec struct {
	Text string `json:"text,omitempty"`
}

// GreetingStatus says whether it is said.
type GreetingStatus struct {
	Conditions []spec.Condition `json:"conditions,omitempty"`
}
