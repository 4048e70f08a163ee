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
// The images that a recipe stands on are made here, and are found under the names
// that the recipe has for them: [DebianImage] is a minimal system made of Debian's
// packages, [GoImage] is the newest with this host's Go. Recipes are built as they
// are. What belongs to this host comes by mounts that the images do not keep: its
// sources of Debian's packages, its Go modules and its build cache.
package imagebuild
