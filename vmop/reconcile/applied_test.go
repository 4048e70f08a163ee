package reconcile

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// What is hashed is what encoding/json makes of an object: another digest would have every object
// written again by the next version.
func TestObjectsAreEncodedAsByJSON(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "vmop-test", "x<y>&", "é\u2028", "\"\\\n", "\xff"})
	flag := rapid.Ptr(rapid.Bool(), true)
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.OneOf(rapid.Just[map[string]string](nil), rapid.MapOf(text, text))
		cm := &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{Kind: text.Draw(t, "kind"), APIVersion: text.Draw(t, "version")},
			ObjectMeta: metav1.ObjectMeta{
				Name: text.Draw(t, "name"), Namespace: text.Draw(t, "namespace"),
				Labels: entries.Draw(t, "labels"), Annotations: entries.Draw(t, "annotations"),
				OwnerReferences: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) metav1.OwnerReference {
					return metav1.OwnerReference{
						APIVersion: text.Draw(t, "version"), Kind: text.Draw(t, "kind"), Name: text.Draw(t, "name"), UID: types.UID(text.Draw(t, "uid")),
						Controller: flag.Draw(t, "controller"), BlockOwnerDeletion: flag.Draw(t, "blocks"),
					}
				}), 0, 2).Draw(t, "owners"),
			},
		}
		if rapid.Bool().Draw(t, "filled") {
			cm.Data = entries.Draw(t, "data")
		}
		want, err := json.Marshal(cm)
		if got := string(encoded(cm)); err != nil || got != string(want) {
			t.Fatalf("%s, want %s (%v)", got, want, err)
		}
	})
}

// Whatever else metadata have, or come to have with a later Kubernetes, is encoded, too.
func TestAllMetadataAreEncoded(t *testing.T) {
	of := reflect.TypeFor[metav1.ObjectMeta]()
	for i := range of.NumField() {
		cm := &corev1.ConfigMap{}
		switch f := reflect.ValueOf(&cm.ObjectMeta).Elem().Field(i); f.Interface().(type) {
		case string, types.UID:
			f.SetString("x")
		case int64:
			f.SetInt(7)
		case *int64:
			f.Set(reflect.ValueOf(new(int64(7))))
		case metav1.Time:
			f.Set(reflect.ValueOf(metav1.NewTime(time.Unix(1, 0))))
		case *metav1.Time:
			f.Set(reflect.ValueOf(&metav1.Time{Time: time.Unix(1, 0)}))
		case map[string]string:
			f.Set(reflect.ValueOf(map[string]string{"a": "b"}))
		default:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			if e := f.Index(0); e.Kind() == reflect.String {
				e.SetString("x")
			}
		}
		want, err := json.Marshal(cm)
		if got := string(encoded(cm)); err != nil || got != string(want) {
			t.Errorf("%s: %s, want %s (%v)", of.Field(i).Name, got, want, err)
		}
	}
}
