package disktest

import (
	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/disk"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// downloadMutants are about downloads.
func downloadMutants() []mutant {
	asked := func(s *disk.Snapshot) bool {
		return s.Disk != nil && s.Disk.DeletionTimestamp == nil && objects.DownloadRequest(s.Disk) != ""
	}
	return []mutant{
		{
			Fault: "requests for downloads are not remembered", Promise: "a download is given once for who asks for it",
			Before: func(s *disk.Snapshot) {
				if d := s.Disk.Status.Download; d != nil && d.Phase.Final() {
					d.Phase, d.PodUID = spec.DownloadPending, ""
				}
			},
		},
		{
			Fault: "who has a disk does not count for downloads", Promise: "nobody reads beside a writer",
			Before: func(s *disk.Snapshot) {
				if asked(s) && s.Claim != nil && s.Claim.Annotations[names.AnnotationFilled] != "" {
					s.Users = nil
				}
			},
		},
		{
			Fault: "any Secret of the name has the key of a download", Promise: "a download has a key of its own",
			Before: func(s *disk.Snapshot) {
				if s.DownloadKey != nil && s.DownloadPod != nil {
					s.DownloadKey.Annotations = map[string]string{names.AnnotationMadeFor: string(s.Disk.UID)}
					s.DownloadKey.OwnerReferences = []metav1.OwnerReference{{UID: s.DownloadPod.UID}}
				}
			},
		},
		{
			Fault: "what is being made is given", Promise: "nothing is given that is not there",
			After: promises.Adds(func(s *disk.Snapshot) reconcile.Action {
				if !asked(s) || s.Claim == nil || s.DownloadPod != nil || s.Claim.Annotations[names.AnnotationFilled] != "" {
					return nil
				}
				return reconcile.Create{Object: objects.FilledDisk(s.Disk).DownloadJob(s.Settings, "raw")}
			}),
		},
		{
			Fault: "a download may write", Promise: "a download only reads",
			After: func(_ *disk.Snapshot, p *reconcile.Plan) {
				for _, a := range p.Actions {
					if c, is := a.(reconcile.Create); is {
						if pod, is := c.Object.(*corev1.Pod); is && objects.DownloadRequest(pod) != "" {
							for i := range pod.Spec.Containers[0].VolumeMounts {
								pod.Spec.Containers[0].VolumeMounts[i].ReadOnly = false
							}
						}
					}
				}
			},
		},
		{
			Fault: "requests for downloads are not seen", Promise: "who asks for a download is answered",
			Before: func(s *disk.Snapshot) { delete(s.Disk.Annotations, names.AnnotationDownloadRequest) },
		},
	}
}
