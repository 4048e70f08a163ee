// Package ociimage writes container images without a container engine or a
// registry: an archive with one layer, which "ctr images import" reads. The same
// image gives the same bytes.
package ociimage
