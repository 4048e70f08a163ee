package objects_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/reconcile/objects"
)

func TestPickDisplaySecret(t *testing.T) {
	secrets := func(names ...string) (out []corev1.Secret) {
		for _, name := range names {
			out = append(out, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return out
	}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"b"}, "b"},
		{[]string{"b", "a", "c"}, "a"},
		{[]string{"b", "web-display-secret", "a"}, "web-display-secret"},
		{[]string{"web-display-secret", "a"}, "web-display-secret"},
	} {
		got := objects.PickDisplaySecret("web", secrets(c.names...))
		if (got == nil) != (c.want == "") || got != nil && got.Name != c.want {
			t.Errorf("%q: %v", c.names, got)
		}
	}
}
