package deckhouse

import (
	"encoding/base64"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/dialect/internal/tree"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// The kinds of disks and images, with their group.
const (
	// DiskKind is the kind that [TranslateDisk] accepts.
	DiskKind = kindDisk + "." + Group
	// ImageKind is the kind that [TranslateImage] accepts.
	ImageKind = kindImage + "." + Group
	// ClusterImageKind is the kind that [TranslateClusterImage] accepts.
	ClusterImageKind = kindClusterImage + "." + Group
	// AttachmentKind is the kind that [TranslateAttachment] accepts.
	AttachmentKind = kindAttachment + "." + Group

	kindAttachment = "VirtualMachineBlockDeviceAttachment"
)

// usualSize is the default size of a disk or of an image's volume, in bytes.
const usualSize = 10 << 30

type single struct {
	root    *tree.Node
	all     []spec.Object
	without []spec.Problem
}

// leaveOut records why the object has no counterpart; only the first reason counts.
func (s *single) leaveOut(n *tree.Node, format string, args ...any) {
	if len(s.without) == 0 {
		o := s.root.Object()
		s.without = []spec.Problem{o.Problem(n.Path(), "the "+o.Kind+" is left out: "+fmt.Sprintf(format, args...))}
	}
}

func begin(o *spec.Object, all []spec.Object, meta *metav1.ObjectMeta) (*single, error) {
	root, err := tree.New(o)
	if err != nil {
		return nil, err
	}
	m := root.Get("metadata")
	meta.Name, meta.Namespace = m.Get("name").String(), m.Get("namespace").String()
	meta.Labels, meta.Annotations = m.Get("labels").Strings(), m.Get("annotations").Strings()
	for _, name := range []string{"apiVersion", "kind", "status"} {
		root.Get(name).ReadAll()
	}
	for _, name := range tree.ServerMade {
		m.Get(name).ReadAll()
	}
	root.Get("spec").Read()
	return &single{root: root, all: all}, nil
}

func (s *single) end(wrong field.ErrorList) (notes []spec.Problem, made bool, err error) {
	if len(s.without) > 0 {
		return s.without, false, nil
	}
	if len(wrong) > 0 { // the fields have the same names here
		return nil, false, &tree.FieldError{Path: wrong[0].Field, Message: wrong[0].ErrorBody()}
	}
	return s.root.Notes(unread), true, nil
}

// TranslateDisk translates a disk, and returns notes on what of it has no counterpart. The result
// is nil if the disk's source has none; the notes then contain the reason.
func TranslateDisk(o *spec.Object, all []spec.Object) (*spec.VirtualDisk, []spec.Problem, error) {
	out := spec.NewDisk("", "", resource.Quantity{})
	s, err := begin(o, all, &out.ObjectMeta)
	if err != nil {
		return nil, nil, err
	}
	claim := s.root.Get("spec", "persistentVolumeClaim")
	claim.Read()
	c := &out.Spec.PersistentVolumeClaim
	c.StorageClassName = className(claim)
	var said bool
	if c.Size, said = claim.Get("size").Quantity(); !said {
		capacity, _ := s.root.Get("status", "capacity").Quantity()
		c.Size = s.size("the disk", capacity)
	}
	if source := s.root.Get("spec", "dataSource"); source.Is() {
		out.Spec.DataSource = s.source(source)
	}
	notes, made, err := s.end(spec.ValidateDisk(out))
	if !made {
		return nil, notes, err
	}
	return out, notes, nil
}

// TranslateImage is [TranslateDisk] for an image, whose volume has a size here.
func TranslateImage(o *spec.Object, all []spec.Object) (*spec.VirtualImage, []spec.Problem, error) {
	out := spec.NewImage("", "", resource.Quantity{}, spec.VirtualDiskSource{})
	s, err := begin(o, all, &out.ObjectMeta)
	if err != nil {
		return nil, nil, err
	}
	s.imageSpec(&out.Spec)
	notes, made, err := s.end(spec.ValidateImage(out))
	if !made {
		return nil, notes, err
	}
	return out, notes, nil
}

// TranslateClusterImage is [TranslateImage] for an image of the cluster. If it is a copy of an
// image in all, it gets the source of that image.
func TranslateClusterImage(o *spec.Object, all []spec.Object) (*spec.ClusterVirtualImage, []spec.Problem, error) {
	out := spec.NewClusterImage("", resource.Quantity{}, spec.VirtualDiskSource{})
	s, err := begin(o, all, &out.ObjectMeta)
	if err != nil {
		return nil, nil, err
	}
	s.imageSpec(&out.Spec)
	if r := out.Spec.DataSource.ObjectRef; r != nil {
		ref := s.root.Get("spec", "dataSource", "objectRef")
		out.Spec.DataSource = *s.ofImage(ref, r.Kind, ref.Get("namespace").String(), r.Name)
	}
	notes, made, err := s.end(spec.ValidateClusterImage(out))
	if !made {
		return nil, notes, err
	}
	return out, notes, nil
}

// TranslateAttachment is [TranslateDisk] for an attachment. The result is nil for one of an image:
// here, images are in the machine's own list.
func TranslateAttachment(o *spec.Object, all []spec.Object) (*spec.VirtualMachineBlockDeviceAttachment, []spec.Problem, error) {
	out := spec.NewAttachment("", "", "", spec.AttachedBlockDevice{})
	s, err := begin(o, all, &out.ObjectMeta)
	if err != nil {
		return nil, nil, err
	}
	of := s.root.Get("spec")
	out.Spec.VirtualMachineName = of.Get("virtualMachineName").String()
	ref := of.Get("blockDeviceRef")
	ref.Read()
	kind := ref.Get("kind").String()
	out.Spec.BlockDeviceRef = spec.AttachedBlockDevice{Kind: spec.AttachedBlockDeviceKind(kind), Name: ref.Get("name").String()}
	if kind == kindImage || kind == kindClusterImage {
		s.leaveOut(ref.Get("kind"), "a %s is attached to no machine that runs; name it in spec.blockDeviceRefs of the machine", kind)
	}
	notes, made, err := s.end(spec.ValidateAttachment(out))
	if !made {
		return nil, notes, err
	}
	return out, notes, nil
}

func (s *single) imageSpec(out *spec.VirtualImageSpec) {
	of := s.root.Get("spec")
	claim := of.Get("persistentVolumeClaim")
	claim.Read()
	out.PersistentVolumeClaim.StorageClassName = className(claim)
	stored, _ := s.root.Get("status", "size", "unpackedBytes").Quantity()
	out.PersistentVolumeClaim.Size = s.size("the volume of the image", roomFor(stored))
	switch storage := of.Get("storage"); storage.String() {
	case "", "PersistentVolumeClaim", "Kubernetes":
	case "ContainerRegistry":
		storage.Note("images are kept in volumes here, and not in a registry")
	default:
		storage.Note("is %q, and images are kept in volumes here", storage.String())
	}
	out.DataSource = *s.source(of.Get("dataSource"))
}

// size returns the status's value of a size that the specification does not set.
func (s *single) size(what string, status resource.Quantity) resource.Quantity {
	of := s.root.Get("spec")
	if status.Sign() > 0 {
		of.Remark("does not say how large %s is; it has %s, by what the status says", what, status.String())
		return status
	}
	q := *resource.NewQuantity(usualSize, resource.BinarySI)
	of.Remark("does not say how large %s is; it has %s, which persistentVolumeClaim.size says", what, q.String())
	return q
}

// roomFor returns the size of a volume for a file: whole GiB, including the file system's overhead.
func roomFor(file resource.Quantity) resource.Quantity {
	const granule = 1 << 30
	n := file.Value() + file.Value()/16
	return *resource.NewQuantity((n+granule-1)/granule*granule, resource.BinarySI)
}

func className(claim *tree.Node) *string {
	if n := claim.Get("storageClassName"); n.Is() {
		return new(n.String())
	}
	return nil
}

func (s *single) source(n *tree.Node) *spec.VirtualDiskSource {
	n.Read()
	kind := n.Get("type")
	out := &spec.VirtualDiskSource{Type: spec.VirtualDiskSourceType(kind.String())}
	if out.Type == spec.DiskSourceUpload && s.root.Object().Kind == kindClusterImage {
		s.leaveOut(kind, "nobody uploads an image of the cluster here; have a server of http or https, or a registry, offer it, or upload it as a VirtualImage")
		return out
	}
	if h := n.Get("http"); h.Is() {
		h.Read()
		out.HTTP = &spec.VirtualDiskHTTP{URL: h.Get("url").String(), CABundle: certificates(h)}
		sum := h.Get("checksum")
		sum.Read()
		switch sha := sum.Get("sha256"); {
		case sha.Is() && limits.ImageChecksum("sha256:"+sha.String(), false) != nil:
			sha.Note("%q is no checksum of SHA-256, and left out: the server is trusted", sha.String())
		case sha.Is():
			out.HTTP.Checksum = &spec.VirtualDiskChecksum{SHA256: sha.String()}
			sum.Get("md5").Note("is left out: that of SHA-256 counts")
		default:
			sum.Get("md5").Note("is one of MD5, which is left out: the server is trusted")
		}
	}
	if c := n.Get("containerImage"); c.Is() {
		c.Read()
		out.ContainerImage = &spec.VirtualDiskContainerImage{Image: c.Get("image").String(), CABundle: certificates(c)}
		if secret := c.Get("imagePullSecret"); secret.Is() {
			secret.Read()
			out.ContainerImage.ImagePullSecret = &spec.VirtualDiskPullSecret{Name: secret.Get("name").String()}
			secret.Get("namespace").Note("is left out: the Secret is one of the namespace that images of the cluster are kept in, and has to be copied there")
		}
	}
	if r := n.Get("objectRef"); r.Is() {
		r.Read()
		kind := r.Get("kind")
		out.ObjectRef = &spec.VirtualDiskObjectRef{Kind: kind.String(), Name: r.Get("name").String()}
		if strings.HasSuffix(kind.String(), "Snapshot") {
			s.leaveOut(kind, "a %s has no counterpart", kind.String())
		}
	}
	return out
}

// ofImage returns the source of an image in all, for objects that cannot refer to the image itself.
// Without one the object is left out.
func (s *single) ofImage(ref *tree.Node, kind, namespace, name string) *spec.VirtualDiskSource {
	const deepest = 8 // images of images, which may be copies of each other
	none := &spec.VirtualDiskSource{}
	if kind != kindImage && kind != kindClusterImage {
		s.leaveOut(ref.Get("kind"), "nothing here is made of a %s of another namespace", kind)
		return none
	}
	from := fmt.Sprintf("%s %s", kind, name)
	for range deepest {
		of, err := lookUp(s.all, kind, namespace, name)
		if err != nil || of == nil {
			s.leaveOut(ref.Get("name"), "nothing here is made of a %s that is not among the files, such as %s", kind, name)
			return none
		}
		other := &single{root: of, all: s.all}
		source := other.source(of.Get("spec", "dataSource"))
		if len(other.without) > 0 {
			s.leaveOut(ref.Get("name"), "%s is left out, too", from)
			return none
		}
		if source.Type == spec.DiskSourceUpload {
			s.leaveOut(ref.Get("name"), "%s is what somebody uploads, and nothing of another namespace is made of that", from)
			return none
		}
		if source.ObjectRef == nil {
			ref.Remark("is made of what %s is made of, as nothing here refers to that", from)
			return source
		}
		kind, name = source.ObjectRef.Kind, source.ObjectRef.Name
		if ns := of.Get("spec", "dataSource", "objectRef", "namespace").String(); ns != "" {
			namespace = ns
		}
	}
	s.leaveOut(ref.Get("name"), "%s is a copy of itself", from)
	return none
}

func certificates(source *tree.Node) string {
	n := source.Get("caBundle")
	if !n.Is() {
		return ""
	}
	pem, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.String()), ""))
	if err != nil || !strings.Contains(string(pem), "-----BEGIN CERTIFICATE-----") {
		n.Note("has no certificates in base64, and is left out")
		return ""
	}
	return string(pem)
}

func lookUp(all []spec.Object, kind, namespace, name string) (*tree.Node, error) {
	for i := range all {
		o := &all[i]
		if group, _, _ := strings.Cut(o.APIVersion, "/"); group != Group || o.Kind != kind || o.Name != name {
			continue
		}
		if kind == kindClusterImage || kind == kindClass || o.Namespace == namespace {
			return tree.Companion(o)
		}
	}
	return nil, nil
}
