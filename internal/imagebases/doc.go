// Package imagebases knows which images the recipes of deploy/images stand on: the
// file deploy/images/bases has a digest for each name that a recipe has, which
// scripts/images builds with, and [Renew] asks the registries for the digests that the
// names have now.
package imagebases
