package disk_test

import (
	"path"
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The pod has no more rights than a program needs that reads a file, and a key of its own.
func TestDownloadJob(t *testing.T) {
	d := spec.NewDisk("lab", "data", resource.MustParse("1Gi"))
	d.UID, d.Annotations = "u1", map[string]string{names.AnnotationDownloadRequest: "d1"}
	mode := corev1.PersistentVolumeFilesystem
	d.Spec.PersistentVolumeClaim.VolumeMode = &mode
	f := objects.FilledDisk(d)
	p := f.DownloadJob(objects.Settings{RunnerImage: "runner", Privileged: true, KVMResource: "kvm"}, "qcow2")
	p.UID = "u2"
	c := &p.Spec.Containers[0]
	key, _ := f.DownloadKey(p, noon)
	for name, ok := range map[string]bool{
		"no token":                !*p.Spec.AutomountServiceAccountToken,
		"not root":                *p.Spec.SecurityContext.RunAsNonRoot && *p.Spec.SecurityContext.RunAsUser != 0,
		"no privileges":           c.SecurityContext.Privileged == nil && !*c.SecurityContext.AllowPrivilegeEscalation && *c.SecurityContext.ReadOnlyRootFilesystem && len(c.SecurityContext.Capabilities.Add) == 0,
		"its volume alone":        slices.Equal(objects.PodClaims(p), []string{"data-vd"}),
		"what it does":            slices.Equal(c.Args, []string{"download", "-image=" + path.Join(machineconfig.DiskMountDir, "source", machineconfig.DiskFile), "-format=qcow2", "-certificates=/run/secrets/transfer", "-wait=10m0s"}),
		"it is watched":           p.Labels[names.LabelComponent] == names.ComponentRunner && p.Labels[names.LabelInstance] == "",
		"the key goes with it":    len(key.OwnerReferences) == 1 && key.OwnerReferences[0].UID == p.UID && p.Spec.Volumes[1].Secret.SecretName == key.Name,
		"it ends, and ends once":  p.Spec.RestartPolicy == corev1.RestartPolicyNever && *p.Spec.ActiveDeadlineSeconds > 0,
		"no port is open to pods": len(c.Ports) == 0,
	} {
		if !ok {
			t.Errorf("not so: %s\n%+v", name, p)
		}
	}
}
