// Package imagebuild builds container images from recipes without a container
// engine and without a registry, by buildah. It needs root, and Debian 12, whose
// mirrors have the packages of both releases.
//
//	b, err := imagebuild.New(ctx, imagebuild.Options{Context: "../.."})
//	...
//	defer b.Close()
//	err = b.Build(ctx, "deploy/images/runner.debian.Dockerfile", imagebuild.Release, "example.org/runner:1")
//	err = b.Export(ctx, "example.org/runner:1", "runner.tar")
//
// The base images of recipes are built by this package, under the names in the recipes:
// [DebianImage] is a minimal system of Debian packages, [GoImage] is the newest with this
// host's Go. Recipes are not modified. This host's sources of Debian packages, its Go modules
// and its build cache are mounted, and do not become part of the images.
package imagebuild
