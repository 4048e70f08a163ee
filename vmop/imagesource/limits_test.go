package imagesource

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
)

// What a manifest may name as an image is a source of this package, of the same kind.
func TestSourcesOfManifests(t *testing.T) {
	part := rapid.StringMatching(`[a-z0-9]{1,6}((\.|_|__|-)[a-z0-9]{1,6}){0,2}`)
	sources := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			s := "oci://"
			if rapid.Bool().Draw(t, "registry") {
				s += rapid.SampledFrom([]string{"localhost", "quay.io", "127.0.0.1", "registry.example.org"}).Draw(t, "host") + rapid.SampledFrom([]string{"", ":5000", ":1"}).Draw(t, "port") + "/"
			}
			s += part.Draw(t, "part")
			for range rapid.IntRange(0, 2).Draw(t, "parts") {
				s += "/" + part.Draw(t, "part")
			}
			return s + rapid.SampledFrom([]string{"", ":1", ":latest", ":v1.2_3", "@sha256:" + zeroes, ":1@sha256:" + zeroes}).Draw(t, "tag")
		}),
		rapid.StringMatching(`(http|https|oci|ftp|file|oci-archive|oci-layout|HTTP)://?[a-zA-Z0-9@:/._%-]{0,20}`),
		rapid.StringMatching(`(oci-archive:|oci-layout:|)[a-zA-Z0-9@:/._% -]{0,20}`),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		source := sources.Draw(t, "source")
		s := Source{Location: source}
		if rapid.Bool().Draw(t, "checksum") {
			s.Checksum = rapid.SampledFrom([]string{"sha256:" + zeroes, "sha512:" + zeroes + zeroes, "sha256:00", "md5:00", ""}).Draw(t, "sum")
		}
		if limits.ImageSource(source) != nil || s.Checksum != "" && limits.ImageChecksum(s.Checksum, limits.IsContainerImage(source)) != nil {
			return
		}
		if err := s.Check(); err != nil {
			t.Fatalf("a manifest may say %q with %q, which is refused here: %v", source, s.Checksum, err)
		}
		kind, _ := s.Kind()
		if local := kind != HTTP && kind != Registry; local != limits.LocalImage(source) {
			t.Fatalf("%q is %s here, and for a manifest on the host itself: %v", source, kind, limits.LocalImage(source))
		}
		if container := kind != HTTP && kind != File; container != limits.IsContainerImage(source) {
			t.Fatalf("%q is %s here, and for a manifest a container image: %v", source, kind, limits.IsContainerImage(source))
		}
	})
}

// zeroes are the digits of a SHA-256.
const zeroes = "0000000000000000000000000000000000000000000000000000000000000000"
