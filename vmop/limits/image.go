package limits

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// MaxCABundle is the maximum length of a source's CA certificates, in bytes.
const MaxCABundle = 65536

// maxEscapedCABundle is how long they may be as JSON, in bytes: a pod gets them in an environment
// variable, of which Linux takes no more than 128 KiB with all that is beside them.
const maxEscapedCABundle = MaxCABundle * 3 / 2

// CABundle checks the length of a source's CA certificates.
func CABundle(bundle string) error {
	if n := len(bundle); n > MaxCABundle {
		return fmt.Errorf("must have at most %d bytes", MaxCABundle)
	}
	escaped := 0
	for i := range len(bundle) {
		switch c := bundle[i]; {
		case c == '\n' || c == '\r' || c == '\t' || c == '"' || c == '\\' || c >= utf8.RuneSelf: // such as U+2028
			escaped += 2
		case c < ' ' || strings.IndexByte("<>&$", c) >= 0:
			escaped += 6
		default:
			escaped++
		}
	}
	if escaped > maxEscapedCABundle {
		return errors.New("has too many line breaks and characters that JSON escapes; leave out what is not a certificate")
	}
	return nil
}

// DefaultContainerDisk is the maximum size of a container disk if the manifest sets none, in bytes.
const DefaultContainerDisk = 20 << 30

const (
	ociPrefix     = "oci://"
	archivePrefix = "oci-archive:"
	layoutPrefix  = "oci-layout:"
)

// containerImage is the grammar of references of the OCI distribution specification:
// HOST[:PORT]/REPOSITORY[:TAG][@DIGEST]. It is compiled lazily, because few runners need it and all
// of them count their memory.
var containerImage = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((localhost|[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(:[0-9]{1,5})?/)?` +
		`[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]+)?$`)
})

// LocalImage reports whether an image's source is on the host itself: a file, an OCI image layout,
// or an archive of one.
func LocalImage(source string) bool {
	scheme, isURL := URLScheme(source)
	return !isURL || scheme != "http" && scheme != "https" && scheme != "oci"
}

// ImageSource checks the source of an image: a URL of http, https or oci, or on one host a file,
// oci-archive:FILE or oci-layout:DIRECTORY.
func ImageSource(source string) error {
	if err := Text(source); err != nil {
		return err
	}
	const want = "must be a URL of http, https or oci, or on one host a file, oci-archive:FILE or oci-layout:DIRECTORY"
	for _, prefix := range []string{archivePrefix, layoutPrefix} {
		if rest, ok := strings.CutPrefix(source, prefix); ok {
			if rest == "" {
				return errors.New(want)
			}
			return nil
		}
	}
	scheme, isURL := URLScheme(source)
	switch {
	case source == "" || isURL && scheme != "http" && scheme != "https" && scheme != "oci":
		return errors.New(want)
	case !isURL:
		return nil
	case scheme == "oci":
		return containerReference(strings.TrimPrefix(source, ociPrefix), "oci://REGISTRY/REPOSITORY:TAG")
	}
	u, err := url.Parse(source)
	switch {
	case err != nil || !strings.HasPrefix(source, scheme+"://"): // the parser's message repeats it, maybe with a password
		return errors.New("is not a valid URL such as https://example.org/debian.qcow2")
	case u.Host == "":
		return errors.New("the URL has no host")
	case u.User != nil:
		return errors.New("the URL must not contain a user name or password, which everybody who may read the machine could read")
	}
	return nil
}

// ContainerImage checks the name of a container image with a disk: a registry reference, or on one
// host oci-archive:FILE or oci-layout:DIRECTORY.
func ContainerImage(image string) error {
	if err := Text(image); err != nil {
		return err
	}
	if strings.HasPrefix(image, archivePrefix) || strings.HasPrefix(image, layoutPrefix) {
		return ImageSource(image)
	}
	return containerReference(image, "REGISTRY/REPOSITORY:TAG")
}

// ContainerSource returns the source of a container image, see [ImageSource].
func ContainerSource(image string) string {
	if strings.HasPrefix(image, archivePrefix) || strings.HasPrefix(image, layoutPrefix) {
		return image
	}
	return ociPrefix + image
}

// minRepository and maxRepository are the limits of registries, in bytes.
const (
	minRepository = 2
	maxRepository = 255
	maxTag        = 128
)

func containerReference(s, like string) error {
	repository, digest, _ := strings.Cut(s, "@")
	if host, rest, ok := strings.Cut(repository, "/"); ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		repository = rest
	}
	repository, tag, _ := strings.Cut(repository, ":")
	if len(tag) > maxTag || digest != "" && ImageChecksum(digest, true) != nil || len(repository) < minRepository || len(repository) > maxRepository || !containerImage().MatchString(s) {
		return errors.New("must be the name of a container image such as " + like + ", or the same with @sha256:DIGEST")
	}
	return nil
}

// ImagePath checks the path of a disk in a container image.
func ImagePath(p string) error {
	if err := Text(p); err != nil {
		return err
	}
	if clean := path.Clean("/" + p); clean == "/" || strings.HasSuffix(p, "/") || strings.Contains("/"+p+"/", "/../") {
		return errors.New("must be that of a file in the container image, such as /disk/disk.img")
	}
	return nil
}

// ImageChecksum checks the checksum of an image: of the file at its source, or of a container
// image's manifest.
func ImageChecksum(sum string, container bool) error {
	kind, digits, _ := strings.Cut(sum, ":")
	want := map[string]int{"sha256": 32, "sha512": 64}[kind]
	got, err := hex.DecodeString(digits)
	switch {
	case want == 0 || err != nil || len(got) != want:
		return errors.New("must be sha256:HEX or sha512:HEX")
	case container && kind != "sha256":
		return errors.New("must be sha256:HEX: that of a container image is its digest")
	}
	return nil
}

// IsContainerImage reports whether a source is a container image.
func IsContainerImage(source string) bool {
	return strings.HasPrefix(source, ociPrefix) || strings.HasPrefix(source, archivePrefix) || strings.HasPrefix(source, layoutPrefix)
}

// LocalPath returns the path in a source on this host, and a function that returns the source with
// another path.
func LocalPath(source string) (file string, with func(file string) string) {
	for _, prefix := range []string{archivePrefix, layoutPrefix} {
		if rest, ok := strings.CutPrefix(source, prefix); ok {
			return rest, func(file string) string { return prefix + file }
		}
	}
	return source, func(file string) string { return file }
}
