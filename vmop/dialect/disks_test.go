package dialect_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/dialect"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
)

// A disk, image or attachment in Deckhouse's terms, of all that has a counterpart here, is
// what it was in ours, and has the notes of what has another one.
func TestDisksComeBackFromDeckhouse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := spectest.VirtualMachine().Draw(t, "vm")
		w := &diskTale{meta: metav1.ObjectMeta{Namespace: from.Namespace, Name: spectest.Label().Draw(t, "name"), Labels: from.Labels}, theirs: object{}}
		w.meta.Name = strings.Trim(w.meta.Name[:min(len(w.meta.Name), spec.MaxClusterImageName)], "-")
		if rapid.Bool().Draw(t, "annotated") {
			w.meta.Annotations = map[string]string{"of.example/a": spectest.Text().Draw(t, "annotation")}
		}
		w.kind = rapid.SampledFrom([]string{spec.KindDisk, spec.KindImage, spec.KindClusterImage, spec.KindAttachment}).Draw(t, "kind")
		var ours spec.TypedObject
		switch w.kind {
		case spec.KindDisk:
			d := spec.NewDisk("", "", resource.Quantity{})
			d.Spec.PersistentVolumeClaim.StorageClassName = w.claim(t)
			d.Spec.PersistentVolumeClaim.Size = w.diskSize(t)
			if rapid.Bool().Draw(t, "of something") {
				s := w.source(t, true)
				d.Spec.DataSource = &s
			}
			d.ObjectMeta, ours = w.meta, d
		case spec.KindImage:
			i := spec.NewImage("", "", resource.Quantity{}, spec.VirtualDiskSource{})
			i.Spec.PersistentVolumeClaim.StorageClassName = w.claim(t)
			i.Spec.PersistentVolumeClaim.Size = w.imageSize(t)
			w.storage(t)
			i.Spec.DataSource = w.source(t, true)
			i.ObjectMeta, ours = w.meta, i
		case spec.KindClusterImage:
			w.meta.Namespace = ""
			i := spec.NewClusterImage("", resource.Quantity{}, spec.VirtualDiskSource{})
			i.Spec.PersistentVolumeClaim.Size = w.imageSize(t)
			i.Spec.DataSource = w.source(t, false)
			i.ObjectMeta, ours = w.meta, i
		case spec.KindAttachment:
			disk := spectest.Label().Draw(t, "disk")
			a := spec.NewAttachment("", "", from.Name, spec.AttachedBlockDevice{Kind: spec.AttachedDisk, Name: disk})
			w.theirs["virtualMachineName"], w.theirs["blockDeviceRef"] = from.Name, object{"kind": "VirtualDisk", "name": disk}
			a.ObjectMeta, ours = w.meta, a
		}
		w.check(t, ours)
	})
}

// diskTale is a disk, image or attachment in another system's terms, under way.
type diskTale struct {
	kind           string
	meta           metav1.ObjectMeta
	theirs, status object
	others         []object
	noted          []string
}

func (w *diskTale) check(t *rapid.T, ours spec.TypedObject) {
	var text strings.Builder
	self := object{"apiVersion": "virtualization.deckhouse.io/v1alpha2", "kind": w.kind, "metadata": w.meta, "spec": w.theirs}
	if w.status != nil {
		self["status"] = w.status
	}
	for _, o := range append(w.others, self) {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "---\n%s\n", data)
	}
	translated, err := dialect.Translate(load(t, []byte(text.String())))
	if err != nil || len(translated.LeftOut) > 0 {
		t.Fatalf("%+v, %v\nfrom %s", translated, err, text.String())
	}
	all := translated.All()
	i := slices.IndexFunc(all, func(m dialect.Translated) bool {
		return m.Object.Name == w.meta.Name && m.Object.Kind == w.kind
	})
	if i < 0 || len(all) != len(w.others)+1 {
		t.Fatalf("%+v\nfrom %s", all, text.String())
	}
	if !apiequality.Semantic.DeepEqual(ours, all[i].Typed) {
		t.Fatalf("came back different: %s\nfrom %s", cmp.Diff(ours, all[i].Typed), text.String())
	}
	var noted []string
	for _, n := range all[i].Notes {
		noted = append(noted, n.Path)
	}
	slices.Sort(noted)
	slices.Sort(w.noted)
	if !slices.Equal(noted, w.noted) {
		t.Fatalf("notes %v, want some of %q\nfrom %s", all[i].Notes, w.noted, text.String())
	}
	for _, k := range spec.Kinds() {
		if errs := k.Validate(all[i].Typed); len(errs) > 0 {
			t.Fatalf("%v", errs)
		}
	}
}

// claim draws the storage class of the claim, and the claim.
func (w *diskTale) claim(t *rapid.T) *string {
	claim := object{}
	w.theirs["persistentVolumeClaim"] = claim
	if !rapid.Bool().Draw(t, "storage class") {
		return nil
	}
	class := rapid.SampledFrom([]string{"", "fast"}).Draw(t, "storageClassName")
	claim["storageClassName"] = class
	return &class
}

func (w *diskTale) diskSize(t *rapid.T) resource.Quantity {
	switch rapid.SampledFrom([]string{"said", "of the status", "unknown"}).Draw(t, "size") {
	case "said":
		size := spectest.Bytes(1, 1<<40).Draw(t, "size")
		w.theirs["persistentVolumeClaim"].(object)["size"] = size
		return size
	case "of the status":
		w.status = object{"capacity": "2Gi"}
		w.noted = append(w.noted, "spec")
		return resource.MustParse("2Gi")
	}
	w.noted = append(w.noted, "spec")
	return resource.MustParse("10Gi")
}

// imageSize draws what the volume of an image has, of which only a status says something.
func (w *diskTale) imageSize(t *rapid.T) resource.Quantity {
	w.noted = append(w.noted, "spec")
	if rapid.Bool().Draw(t, "a status says it") {
		w.status = object{"size": object{"stored": "300Mi", "unpackedBytes": "17179869184"}} // 16Gi
		return resource.MustParse("17Gi")
	}
	return resource.MustParse("10Gi")
}

func (w *diskTale) storage(t *rapid.T) {
	switch s := rapid.SampledFrom([]string{"", "PersistentVolumeClaim", "Kubernetes", "ContainerRegistry"}).Draw(t, "storage"); s {
	case "":
	case "ContainerRegistry":
		w.noted = append(w.noted, "spec.storage")
		fallthrough
	default:
		w.theirs["storage"] = s
	}
}

// source draws what it is a copy of; namespaced says that it can refer to what is in a
// namespace.
func (w *diskTale) source(t *rapid.T, namespaced bool) spec.VirtualDiskSource {
	const pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
	authority := func(of object, at string) string {
		switch rapid.SampledFrom([]string{"", "pem", "broken"}).Draw(t, "caBundle") {
		case "pem":
			of["caBundle"] = base64.StdEncoding.EncodeToString([]byte(pem))
			return pem
		case "broken":
			of["caBundle"] = "%"
			w.noted = append(w.noted, "spec.dataSource."+at+".caBundle")
		}
		return ""
	}
	kinds := []string{"HTTP", "ContainerImage", "of an image of the cluster"}
	if namespaced {
		kinds = append(kinds[:2], "ObjectRef", "Upload")
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "source"); kind {
	case "HTTP":
		h := &spec.VirtualDiskHTTP{URL: imageURL}
		from := object{"url": imageURL}
		h.CABundle = authority(from, "http")
		sum := strings.Repeat("0f", 32)
		switch rapid.SampledFrom([]string{"", "sha256", "md5", "both", "broken"}).Draw(t, "checksum") {
		case "sha256":
			from["checksum"], h.Checksum = object{"sha256": sum}, &spec.VirtualDiskChecksum{SHA256: sum}
		case "md5":
			from["checksum"] = object{"md5": sum[:32]}
			w.noted = append(w.noted, "spec.dataSource.http.checksum.md5")
		case "both":
			from["checksum"], h.Checksum = object{"sha256": sum, "md5": sum[:32]}, &spec.VirtualDiskChecksum{SHA256: sum}
			w.noted = append(w.noted, "spec.dataSource.http.checksum.md5")
		case "broken":
			from["checksum"] = object{"sha256": "0f"}
			w.noted = append(w.noted, "spec.dataSource.http.checksum.sha256")
		}
		w.theirs["dataSource"] = object{"type": "HTTP", "http": from}
		return spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: h}
	case "ContainerImage":
		c := &spec.VirtualDiskContainerImage{Image: "quay.example/debian:13"}
		from := object{"image": c.Image}
		c.CABundle = authority(from, "containerImage")
		if rapid.Bool().Draw(t, "imagePullSecret") {
			c.ImagePullSecret = &spec.VirtualDiskPullSecret{Name: "registry"}
			secret := object{"name": "registry"}
			if !namespaced {
				secret["namespace"] = "lab"
				w.noted = append(w.noted, "spec.dataSource.containerImage.imagePullSecret.namespace")
			}
			from["imagePullSecret"] = secret
		}
		w.theirs["dataSource"] = object{"type": "ContainerImage", "containerImage": from}
		return spec.VirtualDiskSource{Type: spec.DiskSourceContainerImage, ContainerImage: c}
	case "ObjectRef":
		r := &spec.VirtualDiskObjectRef{Kind: rapid.SampledFrom([]string{spec.KindImage, spec.KindDisk, spec.KindClusterImage}).Draw(t, "of"), Name: "golden"}
		w.theirs["dataSource"] = object{"type": "ObjectRef", "objectRef": object{"kind": r.Kind, "name": r.Name}}
		if w.meta.Name == r.Name {
			r.Name = "other"
			w.theirs["dataSource"].(object)["objectRef"].(object)["name"] = "other"
		}
		return spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: r}
	case "Upload":
		w.theirs["dataSource"] = object{"type": "Upload"}
		return spec.VirtualDiskSource{Type: spec.DiskSourceUpload}
	default: // what the image is a copy of
		ref, meta := object{"kind": "ClusterVirtualImage", "name": "of-the-cluster"}, object{"name": "of-the-cluster"}
		if rapid.Bool().Draw(t, "of a namespace") {
			ref, meta = object{"kind": "VirtualImage", "name": "of-the-cluster", "namespace": "lab"}, object{"name": "of-the-cluster", "namespace": "lab"}
		}
		w.others = append(w.others, object{
			"apiVersion": "virtualization.deckhouse.io/v1alpha2", "kind": ref["kind"], "metadata": meta,
			"spec": object{"dataSource": object{"type": "HTTP", "http": object{"url": imageURL}}},
		})
		w.theirs["dataSource"] = object{"type": "ObjectRef", "objectRef": ref}
		w.noted = append(w.noted, "spec.dataSource.objectRef")
		return spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: imageURL}}
	}
}
