package kindtest

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// Mistake is something wrong that can be done to any valid object of a kind.
type Mistake struct {
	// What is wrong.
	What string
	// Make does it and returns the path of the field.
	Make func(spec.TypedObject) string
	// Stored is why the API server takes the object nevertheless; empty if it refuses it,
	// too.
	Stored string
}

// Why the API server takes what the library finds something wrong with.
const (
	noPattern = "the definition has no pattern of names"
	noReading = "the definition does not look into the text"
	noSelf    = "a rule about spec does not know the name of the object"
	noBytes   = "the definition counts letters, and programs bytes"
	noMatter  = "what is the cluster's is stored without its namespace"
)

// table is built by kind, so that each mistake has the type of its objects.
type table[P spec.TypedObject] []Mistake

// add adds a mistake that the API server finds, too, unless it is said why not.
func (m *table[P]) add(what, field string, do func(P), stored ...string) {
	*m = append(*m, Mistake{
		What: what, Stored: strings.Join(stored, ""),
		Make: func(object spec.TypedObject) string {
			if p, is := object.(P); is {
				do(p)
			}
			return field
		},
	})
}

// names adds what may be wrong with the name of any object.
func (m *table[P]) names(most int) {
	const name = "metadata.name"
	m.add("no name", name, func(p P) { p.SetName(""); p.SetGenerateName("") })
	m.add("a name with capitals", name, func(p P) { p.SetName("Web") })
	m.add("a name with a dash at its end", name, func(p P) { p.SetName("web-") })
	m.add("a name of two words", name, func(p P) { p.SetName("a b") })
	m.add("a long name", name, func(p P) { p.SetName(strings.Repeat("a", most+1)) })
}

// namespaces adds what may be wrong with the namespace of what is in one.
func (m *table[P]) namespaces() {
	m.add("a namespace with a dot", "metadata.namespace", func(p P) { p.SetNamespace("a.b") })
	m.add("a namespace with a long name", "metadata.namespace", func(p P) { p.SetNamespace(strings.Repeat("a", 64)) })
}

// sources adds what may be wrong with a source, which set gives an object.
func (m *table[P]) sources(set func(P, spec.VirtualDiskSource)) {
	const path = "spec.dataSource."
	source := func(what, field string, s spec.VirtualDiskSource, stored ...string) {
		m.add(what, path+field, func(p P) { set(p, *s.DeepCopy()) }, stored...)
	}
	web := &spec.VirtualDiskHTTP{URL: "http://a.test/a"}
	image := &spec.VirtualDiskContainerImage{Image: "debian"}
	source("no type", "type", spec.VirtualDiskSource{HTTP: web})
	source("an unknown type", "type", spec.VirtualDiskSource{Type: "S3"})
	source("a type in small letters", "type", spec.VirtualDiskSource{Type: "http", HTTP: web})
	source("no server", "http", spec.VirtualDiskSource{Type: spec.DiskSourceHTTP})
	source("no container image", "containerImage", spec.VirtualDiskSource{Type: spec.DiskSourceContainerImage})
	source("two sources", "containerImage", spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: web, ContainerImage: image})
	source("the other of two sources", "http", spec.VirtualDiskSource{Type: spec.DiskSourceContainerImage, HTTP: web, ContainerImage: image})
	source("another object beside a server", "objectRef", spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: web, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: "a"}})
	source("an upload beside a server", "upload", spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: web, Upload: &spec.VirtualDiskUpload{}})

	server := func(what, field string, h spec.VirtualDiskHTTP, stored ...string) {
		source(what, "http."+field, spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &h}, stored...)
	}
	server("no URL", "url", spec.VirtualDiskHTTP{})
	server("a URL of FTP", "url", spec.VirtualDiskHTTP{URL: "ftp://a.test/a"})
	server("a URL of no server", "url", spec.VirtualDiskHTTP{URL: "http:///a"}, noReading)
	server("a URL with a password", "url", spec.VirtualDiskHTTP{URL: "https://u:p@a.test/a"}, noReading)
	server("a URL with a line break", "url", spec.VirtualDiskHTTP{URL: "https://a.test/a\nb"}, noReading)
	server("a long URL", "url", spec.VirtualDiskHTTP{URL: "https://a.test/" + strings.Repeat("a", 4096)})
	server("a checksum of nothing", "checksum", spec.VirtualDiskHTTP{URL: web.URL, Checksum: &spec.VirtualDiskChecksum{}})
	server("two checksums", "checksum", spec.VirtualDiskHTTP{URL: web.URL, Checksum: &spec.VirtualDiskChecksum{SHA256: strings.Repeat("0f", 32), SHA512: strings.Repeat("0f", 64)}})
	server("a short checksum", "checksum", spec.VirtualDiskHTTP{URL: web.URL, Checksum: &spec.VirtualDiskChecksum{SHA256: strings.Repeat("0f", 31)}})
	server("a checksum with other letters", "checksum", spec.VirtualDiskHTTP{URL: web.URL, Checksum: &spec.VirtualDiskChecksum{SHA512: strings.Repeat("xy", 64)}})
	server("certificates that are none", "caBundle", spec.VirtualDiskHTTP{URL: web.URL, CABundle: "a.pem"}, noReading)
	server("many certificates", "caBundle", spec.VirtualDiskHTTP{URL: web.URL, CABundle: certificates()})
	server("certificates of many lines", "caBundle", spec.VirtualDiskHTTP{URL: web.URL, CABundle: lines()}, noReading)
	server("many certificates of wide letters", "caBundle", spec.VirtualDiskHTTP{URL: web.URL, CABundle: wide()}, noBytes)

	container := func(what, field string, c spec.VirtualDiskContainerImage, stored ...string) {
		source(what, "containerImage."+field, spec.VirtualDiskSource{Type: spec.DiskSourceContainerImage, ContainerImage: &c}, stored...)
	}
	container("no image", "image", spec.VirtualDiskContainerImage{})
	container("an image of two words", "image", spec.VirtualDiskContainerImage{Image: "a b"}, noReading)
	container("an image that is a file", "image", spec.VirtualDiskContainerImage{Image: "oci-archive:disk.tar"}, noReading)
	container("an image with a scheme", "image", spec.VirtualDiskContainerImage{Image: "oci://quay.io/disks/debian"}, noReading)
	container("a long image", "image", spec.VirtualDiskContainerImage{Image: strings.Repeat("a", 4096) + ".test/disks/debian"})
	container("a directory in an image", "path", spec.VirtualDiskContainerImage{Image: "debian", Path: "/disk/"}, noReading)
	container("a path out of an image", "path", spec.VirtualDiskContainerImage{Image: "debian", Path: "/disk/../../a"}, noReading)
	container("a long path", "path", spec.VirtualDiskContainerImage{Image: "debian", Path: "/" + strings.Repeat("a", 1024)})
	container("a Secret of no name", "imagePullSecret.name", spec.VirtualDiskContainerImage{Image: "debian", ImagePullSecret: &spec.VirtualDiskPullSecret{}})
	container("a Secret with capitals", "imagePullSecret.name", spec.VirtualDiskContainerImage{Image: "debian", ImagePullSecret: &spec.VirtualDiskPullSecret{Name: "Pull"}}, noPattern)
	container("many certificates of a registry", "caBundle", spec.VirtualDiskContainerImage{Image: "debian", CABundle: certificates()})
	container("many certificates of a registry with wide letters", "caBundle", spec.VirtualDiskContainerImage{Image: "debian", CABundle: wide()}, noBytes)
}

// certificates are more than there may be, by one letter.
func certificates() string {
	const begin = "-----BEGIN CERTIFICATE-----\n"
	return begin + strings.Repeat("#", limits.MaxCABundle+1-len(begin))
}

// lines are certificates with more line breaks than go into an environment variable.
func lines() string {
	const begin = "-----BEGIN CERTIFICATE-----\n"
	return begin + strings.Repeat("\n", limits.MaxCABundle-len(begin))
}

// wide are certificates with as many letters as there may be, and more bytes.
func wide() string {
	const begin = "-----BEGIN CERTIFICATE-----\n"
	return begin + strings.Repeat("ü", limits.MaxCABundle-len(begin))
}

// objects adds what may be wrong with another object as the source, and with an upload.
func (m *table[P]) objects(set func(P, spec.VirtualDiskSource)) {
	const path = "spec.dataSource."
	ref := func(what, field string, r spec.VirtualDiskObjectRef, stored ...string) {
		m.add(what, path+"objectRef."+field, func(p P) {
			set(p, spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &r})
		}, stored...)
	}
	m.add("no other object", path+"objectRef", func(p P) { set(p, spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef}) })
	ref("an object of no kind", "kind", spec.VirtualDiskObjectRef{Name: "a"})
	ref("an object of an unknown kind", "kind", spec.VirtualDiskObjectRef{Kind: "VirtualDiskSnapshot", Name: "a"})
	ref("a disk of no name", "name", spec.VirtualDiskObjectRef{Kind: spec.KindDisk})
	ref("a disk with capitals", "name", spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: "A"}, noPattern)
	ref("an image with a long name", "name", spec.VirtualDiskObjectRef{Kind: spec.KindImage, Name: strings.Repeat("a", spec.MaxDiskName+1)})
	ref("the format of a disk", "format", spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: "a", Format: "raw"})
	m.add("the checksum of an upload twice", path+"upload.checksum", func(p P) {
		set(p, spec.VirtualDiskSource{Type: spec.DiskSourceUpload, Upload: &spec.VirtualDiskUpload{
			Checksum: &spec.VirtualDiskChecksum{SHA256: strings.Repeat("0f", 32), SHA512: strings.Repeat("0f", 64)},
		}})
	})
}

// claims adds what may be wrong with the claim that is made.
func (m *table[P]) claims(of func(P) (size *resource.Quantity, class **string)) {
	const size, class = "spec.persistentVolumeClaim.size", "spec.persistentVolumeClaim.storageClassName"
	set := func(text string) func(P) {
		return func(p P) { s, _ := of(p); *s = resource.MustParse(text) }
	}
	m.add("no size", size, func(p P) { s, _ := of(p); *s = resource.Quantity{} })
	m.add("a size of nothing", size, set("0"))
	m.add("a size of nothing in gibibytes", size, set("0Gi"))
	m.add("less than nothing", size, set("-1Gi"))
	m.add("part of a byte", size, set("1500m"), "the definition takes any quantity greater than 0")
	m.add("a storage class with capitals", class, func(p P) { _, c := of(p); *c = new("Fast") }, noPattern)
	m.add("a storage class of two words", class, func(p P) { _, c := of(p); *c = new("a b") }, noPattern)
	m.add("a storage class with a long name", class, func(p P) { _, c := of(p); *c = new(strings.Repeat("a", 254)) })
}
