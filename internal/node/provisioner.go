package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	provisioner = "vmop.test/local"
	// askedBy is the annotation in which Kubernetes names the responsible provisioner.
	askedBy = "volume.kubernetes.io/storage-provisioner"
	// parameterImage of a storage class names the file with which block volumes begin.
	parameterImage = "image"
	// parameterForgets of a storage class prevents that volumes are clones.
	parameterForgets = "forgets"
	provisionedBy    = "pv.kubernetes.io/provisioned-by"
	defaultClass     = "storageclass.kubernetes.io/is-default-class"
)

// StorageClass describes a storage class.
type StorageClass struct {
	Name string
	// Image is a file of this host with which a new block volume begins; empty means zeros.
	Image string
	// Default makes it the class of claims that name none.
	Default bool
	// Forgets creates empty volumes for claims that should be clones of other claims, as
	// provisioners do that do not support dataSource.
	Forgets bool
}

// AddStorageClass creates a storage class. Its volumes are bound as soon as they are claimed, and
// stay when their claim is deleted, until the node ends.
func (n *Node) AddStorageClass(ctx context.Context, c StorageClass) error {
	yes, retain, immediate := true, corev1.PersistentVolumeReclaimRetain, storagev1.VolumeBindingImmediate
	class := &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: c.Name},
		Provisioner:       provisioner,
		ReclaimPolicy:     &retain,
		VolumeBindingMode: &immediate,
		// See grow.
		AllowVolumeExpansion: &yes,
		Parameters:           map[string]string{},
	}
	if c.Image != "" {
		class.Parameters[parameterImage] = c.Image
	}
	if c.Forgets {
		class.Parameters[parameterForgets] = "true"
	}
	if c.Default {
		class.Annotations = map[string]string{defaultClass: "true"}
	}
	_, err := n.Client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("storage class %s: %w", c.Name, err)
	}
	return nil
}

func (n *Node) startProvisioner() {
	ctx, cancel := context.WithCancel(context.Background())
	n.stopping = cancel
	n.volumes.Go(func() {
		for ctx.Err() == nil {
			if err := n.provision(ctx); err != nil && ctx.Err() == nil {
				_, _ = fmt.Fprintf(n.progress, "node: volumes: %v\n", err)
				select {
				case <-ctx.Done():
				case <-time.After(time.Second): // the API server may be away
				}
			}
		}
	})
}

func (n *Node) provision(ctx context.Context) error {
	claims := n.Client.CoreV1().PersistentVolumeClaims("")
	list, err := claims.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := n.provide(ctx, &list.Items[i]); err != nil {
			return err
		}
	}
	watch, err := claims.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if claim, ok := event.Object.(*corev1.PersistentVolumeClaim); ok && claim.DeletionTimestamp == nil {
			if err := n.provide(ctx, claim); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *Node) provide(ctx context.Context, claim *corev1.PersistentVolumeClaim) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
	}()
	switch {
	case claim.Spec.VolumeName != "":
		return n.grow(ctx, claim)
	case claim.Spec.StorageClassName == nil:
		return nil
	case claim.Annotations[askedBy] != provisioner:
		// Kubernetes requests a volume by this annotation. A volume that exists before that is
		// bound without it, and does not name its provisioner.
		return nil
	}
	class, err := n.Client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && class.Provisioner != provisioner {
		return nil
	}
	if err != nil {
		return err
	}
	name := "pvc-" + string(claim.UID)
	_, err = n.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	mode := corev1.PersistentVolumeFilesystem
	if claim.Spec.VolumeMode != nil {
		mode = *claim.Spec.VolumeMode
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	image := class.Parameters[parameterImage]
	source, err := n.cloned(ctx, claim, class)
	if err != nil {
		return err
	}
	if source != "" && mode == corev1.PersistentVolumeBlock {
		image = source
	}
	path, err := n.makeVolume(ctx, name, mode, size.Value(), image)
	if err != nil {
		return err
	}
	if source != "" && mode == corev1.PersistentVolumeFilesystem {
		if _, err := run(ctx, "cp", "-a", "--sparse=always", source+"/.", path); err != nil {
			return err
		}
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    &mode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: *class.ReclaimPolicy,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: types.UID(claim.UID),
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{Name}}},
			}}}},
		},
	}
	_, err = n.Client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	return err
}

// cloned returns the storage behind the volume of which a claim's is a clone; empty if it is none.
func (n *Node) cloned(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (string, error) {
	from := claim.Spec.DataSource
	if from == nil || from.Kind != "PersistentVolumeClaim" || class.Parameters[parameterForgets] != "" {
		return "", nil
	}
	source, err := n.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, from.Name, metav1.GetOptions{})
	if err != nil || source.Spec.VolumeName == "" {
		return "", err
	}
	return n.path("volumes", source.Spec.VolumeName), nil
}

// grow extends a volume of this provisioner to what its bound claim requests, in the order of CSI
// drivers: first the storage, then the volume, then the claim's status. A device keeps its size
// until its loop device is refreshed.
func (n *Node) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has, told := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || !told || has.Cmp(want) >= 0 {
		return nil
	}
	volume, err := n.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil || volume.Annotations[provisionedBy] != provisioner {
		return err
	}
	if volume.Spec.VolumeMode != nil && *volume.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		if err := os.Truncate(n.path("volumes", volume.Name), want.Value()); err != nil {
			return err
		}
		if _, err := run(ctx, "losetup", "--set-capacity", volume.Spec.Local.Path); err != nil {
			return err
		}
	}
	patch := fmt.Appendf(nil, `{"spec":{"capacity":{"storage":%q}}}`, want.String())
	if _, err := n.Client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	patch = fmt.Appendf(nil, `{"status":{"capacity":{"storage":%q}}}`, want.String())
	_, err = n.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (n *Node) makeVolume(ctx context.Context, name string, mode corev1.PersistentVolumeMode, size int64, image string) (string, error) {
	path := n.path("volumes", name)
	if mode == corev1.PersistentVolumeFilesystem {
		return path, os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err := makeDisk(path, size, image); err != nil {
		return "", err
	}
	return loopDevice(ctx, path)
}

func makeDisk(path string, size int64, image string) (err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var begin int64
	if image != "" {
		in, err := os.Open(image)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, in.Close()) }()
		if begin, err = io.Copy(out, in); err != nil {
			return err
		}
	}
	if begin > size {
		return fmt.Errorf("%d bytes are too few for %s, which has %d", size, image, begin)
	}
	return out.Truncate(size)
}
