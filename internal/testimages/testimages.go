// Package testimages builds the images that tests on a node run machines and the operator of,
// once for all of their processes:
//
//	go run ./internal/testimages/cmd/test-images DIR
//	VMOP_TEST_IMAGES=DIR go test -tags e2e ./internal/e2e
//
// # Stability
//
// It is for tests of this module.
package testimages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/vmop/sdk/internal/imagebuild"
)

// The images, by their names on nodes.
const (
	// Runner has the QEMU of the hosts that all other tests run on, so that a machine is the same
	// here and there.
	Runner    = "vmop.test/runner:1"
	NewRunner = "vmop.test/runner:2"
	Operator  = "vmop.test/operator:1"
)

// Folder is the environment variable that names a folder with archives of the images, which are
// built otherwise.
const Folder = "VMOP_TEST_IMAGES"

var recipes = []struct{ image, recipe, release string }{
	{NewRunner, "deploy/images/runner.debian.Dockerfile", imagebuild.Release},
	{Runner, "deploy/images/runner.debian.Dockerfile", imagebuild.OldRelease},
	{Operator, "deploy/images/operator.debian.Dockerfile", imagebuild.Release},
}

// Ensure returns a folder with the archives of the images: the one that the environment names, or
// dir, where they are built from the module in the folder module.
func Ensure(ctx context.Context, module, dir string, progress io.Writer) (string, error) {
	built := os.Getenv(Folder)
	if built == "" {
		return dir, Build(ctx, module, dir, progress)
	}
	for _, r := range recipes {
		if _, err := Digest(built, r.image); err != nil {
			return "", fmt.Errorf("%s=%s has not all images; go run ./internal/testimages/cmd/test-images %[2]s builds them: %w", Folder, built, err)
		}
	}
	return built, nil
}

// Build builds the images by their recipes, as their users do, and writes their archives and
// digests into a folder, which must have none.
func Build(ctx context.Context, module, dir string, progress io.Writer) (err error) {
	b, err := imagebuild.New(ctx, imagebuild.Options{Context: module, Progress: progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for _, r := range recipes {
		if err := b.Build(ctx, r.recipe, r.release, r.image); err != nil {
			return err
		}
		if err := b.Export(ctx, r.image, Archive(dir, r.image)); err != nil {
			return err
		}
		digest, err := b.Digest(ctx, r.image)
		if err != nil {
			return err
		}
		if err := os.WriteFile(digestFile(dir, r.image), []byte(digest), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Archive returns the file with an image, for [node.Node.ImportArchive].
//
// [node.Node.ImportArchive]: https://pkg.go.dev/github.com/vmop/sdk/internal/node
func Archive(dir, image string) string {
	return filepath.Join(dir, strings.NewReplacer("/", "-", ":", "-").Replace(image)+".tar")
}

// Digest returns the digest of an image whose archive is there.
func Digest(dir, image string) (string, error) {
	data, err := os.ReadFile(digestFile(dir, image))
	return string(data), err
}

func digestFile(dir, image string) string { return Archive(dir, image) + ".digest" }
