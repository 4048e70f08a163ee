package crdtest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// The claim of any disk or image, and the pod that fills it, are what the API server
// takes, whatever the name, the size and the source are.
func TestWhatIsMadeOfDrawnDisksIsTaken(t *testing.T) {
	client, _, err := connect() // it is warned of names with dots, which hosts should not have
	if err != nil {
		t.Fatal(err)
	}
	namespace := newNamespace(t, client)
	pods := client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
	claims := client.Resource(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")).Namespace(namespace)
	dryRun := strict
	dryRun.DryRun = []string{metav1.DryRunAll}
	for kind, draw := range map[string]func(*rapid.T) objects.Filled{
		spec.KindDisk: func(rt *rapid.T) objects.Filled {
			d := spectest.Disk().Draw(rt, "disk")
			d.Namespace, d.UID = namespace, "4b2c1d9e-0f3a-4c5b-8d7e-6a9b8c7d6e5f"
			return objects.FilledDisk(d)
		},
		spec.KindImage: func(rt *rapid.T) objects.Filled {
			i := spectest.Image().Draw(rt, "image")
			i.Namespace, i.UID = namespace, "4b2c1d9e-0f3a-4c5b-8d7e-6a9b8c7d6e5f"
			return objects.FilledImage(i)
		},
		spec.KindClusterImage: func(rt *rapid.T) objects.Filled {
			i := spectest.ClusterImage().Draw(rt, "image")
			i.UID = "4b2c1d9e-0f3a-4c5b-8d7e-6a9b8c7d6e5f"
			return objects.FilledClusterImage(i, namespace)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				filled := draw(rt)
				claim, err := toObject(filled.VolumeClaim())
				if err != nil {
					rt.Fatal(err)
				}
				if _, err := claims.Create(t.Context(), claim, dryRun); err != nil {
					rt.Fatal(err)
				}
				source := filled.VolumeClaim()
				source.Name = "source"
				pod, err := toObject(filled.ImportJob(objects.Settings{RunnerImage: "runner"}, source))
				if err != nil {
					rt.Fatal(err)
				}
				if _, err := pods.Create(t.Context(), pod, dryRun); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}
