package spectest

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// Disk generates disks that [spec.ValidateDisk] finds nothing wrong with: empty ones and
// copies of all that there may be copies of, sometimes with a status.
func Disk() *rapid.Generator[*spec.VirtualDisk] {
	return rapid.Custom(func(t *rapid.T) *spec.VirtualDisk {
		d := &spec.VirtualDisk{
			TypeMeta:   metav1.TypeMeta{APIVersion: spec.GroupVersion().String(), Kind: spec.KindDisk},
			ObjectMeta: drawMeta(t, spec.MaxDiskName),
		}
		c := &d.Spec.PersistentVolumeClaim
		c.Size, c.StorageClassName = drawSize(t), drawLongStorageClass(t)
		modes := []corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem}
		if maybe(t, "dataSource") {
			d.Spec.DataSource = drawSource(t, d.Name, spec.KindDisk,
				spec.DiskSourceHTTP, spec.DiskSourceContainerImage, spec.DiskSourceObjectRef, spec.DiskSourceUpload)
			if isFile(d.Spec.DataSource) {
				modes = modes[1:]
			}
		}
		if maybe(t, "volumeMode") {
			c.VolumeMode = new(rapid.SampledFrom(modes).Draw(t, "volumeMode"))
		}
		if hasStatus(t) {
			drawDiskStatus(t, &d.Status)
		}
		return d
	})
}

// isFile reports whether what is made of a source cannot be a block device.
func isFile(s *spec.VirtualDiskSource) bool {
	r := s.ObjectRef
	return s.Type == spec.DiskSourceUpload || r != nil && (r.Kind == spec.KindClusterImage || r.Format == "qcow2")
}

// drawSize draws sizes of disks, in all of their spellings, and the least and the
// greatest one.
func drawSize(t *rapid.T) resource.Quantity {
	return rapid.OneOf(
		Bytes(1, 1<<44),
		rapid.Map(rapid.SampledFrom([]string{"1", "1.5Gi", "2e3", "0.5Ki", "3E", "7Ei", "1000m", ".5Mi"}), resource.MustParse),
		rapid.Just(*resource.NewQuantity(math.MaxInt64, resource.BinarySI)),
	).Draw(t, "size")
}

func drawLongStorageClass(t *rapid.T) *string {
	class := drawStorageClass(t)
	if class != nil && long(t, "the storage class") {
		class = new(strings.Repeat("s", 253))
	}
	return class
}

// drawSource draws what the object of that name and kind is a copy of, of one of some
// types. It is never the object itself.
func drawSource(t *rapid.T, name, kind string, types ...spec.VirtualDiskSourceType) *spec.VirtualDiskSource {
	s := &spec.VirtualDiskSource{Type: rapid.SampledFrom(types).Draw(t, "type")}
	switch s.Type {
	case spec.DiskSourceHTTP:
		s.HTTP = &spec.VirtualDiskHTTP{URL: drawURL(t), Checksum: drawChecksum(t), CABundle: drawLongCABundle(t)}
	case spec.DiskSourceContainerImage:
		c := &spec.VirtualDiskContainerImage{
			Image: rapid.SampledFrom([]string{
				"debian", "ab", "quay.io/disks/debian:13", "localhost/disk", "registry.example:5000/a/b_c.d@sha256:" + strings.Repeat("0f", 32),
				strings.Repeat("r", 255) + ":" + strings.Repeat("T", 128), // the longest that registries take
			}).Draw(t, "image"),
			Path: drawImagePath(t), CABundle: drawLongCABundle(t),
		}
		if long(t, "the image") {
			const rest = ".example.org/disks/debian:13"
			c.Image = strings.Repeat("h", 4096-len(rest)) + rest
		}
		if long(t, "the path") {
			c.Path = "/disk/" + strings.Repeat("ü", 1024-len("/disk/"))
		}
		if maybe(t, "imagePullSecret") {
			c.ImagePullSecret = &spec.VirtualDiskPullSecret{Name: longName(t, "imagePullSecret", 253)}
		}
		s.ContainerImage = c
	case spec.DiskSourceObjectRef:
		s.ObjectRef = drawObjectRef(t, name, kind)
	case spec.DiskSourceUpload:
		if maybe(t, "upload") {
			s.Upload = &spec.VirtualDiskUpload{Checksum: drawChecksum(t)}
		}
	}
	return s
}

func drawURL(t *rapid.T) string {
	url := rapid.OneOf(
		rapid.SampledFrom([]string{"http://a", "https://example.org/grün.qcow2", "http://[2001:db8::1]:8080/a.raw.xz?a=b,c#d", "https://192.0.2.7/a b"}),
		rapid.StringMatching(`https?://[a-z]{1,8}\.example\.org(:[1-9][0-9]{1,3})?/[a-zA-Z0-9,=&?+:"'\\]{0,12}`),
	).Draw(t, "url")
	if long(t, "the url") {
		url = "https://example.org/"
		url += strings.Repeat("ü", 4096-len(url))
	}
	return url
}

func drawChecksum(t *rapid.T) *spec.VirtualDiskChecksum {
	if !maybe(t, "checksum") {
		return nil
	}
	if maybe(t, "sha512") {
		return &spec.VirtualDiskChecksum{SHA512: rapid.StringMatching(`[0-9a-fA-F]{128}`).Draw(t, "sha512")}
	}
	return &spec.VirtualDiskChecksum{SHA256: rapid.StringMatching(`[0-9a-fA-F]{64}`).Draw(t, "sha256")}
}

// drawLongCABundle draws certificates or none, rarely as many letters as there may be.
func drawLongCABundle(t *rapid.T) string {
	longest := long(t, "the caBundle")
	if !longest && !maybe(t, "caBundle") {
		return ""
	}
	text := drawCABundle(t)
	if longest {
		text += strings.Repeat("#", limits.MaxCABundle-len(text))
	}
	return text
}

func drawObjectRef(t *rapid.T, name, kind string) *spec.VirtualDiskObjectRef {
	kinds := []string{spec.KindDisk, spec.KindImage, spec.KindClusterImage}
	if kind == spec.KindDisk { // no image is made of a snapshot
		kinds = append(kinds, spec.KindVolumeSnapshot)
	}
	r := &spec.VirtualDiskObjectRef{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	if r.Kind == spec.KindVolumeSnapshot {
		r.Name = longName(t, "objectRef", 253)
		r.Format = rapid.SampledFrom([]string{"", "raw", "qcow2"}).Draw(t, "format")
		return r
	}
	r.Name = longName(t, "objectRef", spec.MaxDiskName)
	if r.Kind == kind && r.Name == name {
		r.Name = "other-than-" + name[:min(len(name), 1)]
	}
	return r
}
