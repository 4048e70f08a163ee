package debianguest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// baseVersion must change when the steps of building the base change in a way that the lists below
// do not show.
const baseVersion = 1

const baseName = "base.tar"

// baseFiles are those of Debian's container images: without documentation, and without waiting for
// the disk at every package.
var baseFiles = []guestFile{
	{"etc/dpkg/dpkg.cfg.d/docker-apt-speedup", 0o644, "force-unsafe-io\n"},
	{"etc/dpkg/dpkg.cfg.d/docker", 0o644, "path-exclude=/usr/share/doc/*\npath-exclude=/usr/share/man/*\npath-exclude=/usr/share/info/*\npath-exclude=/usr/share/locale/*\n"},
	{"etc/apt/apt.conf.d/docker-no-languages", 0o644, "Acquire::Languages \"none\";\n"},
	{"etc/apt/apt.conf.d/docker-gzip-indexes", 0o644, "Acquire::GzipIndexes \"true\";\n"},
	{"etc/apt/sources.list", 0o644, ""},
	{"etc/resolv.conf", 0o644, ""},
	{"etc/hostname", 0o644, ""},
}

// baseOmits are the folders that are emptied: documentation, and what apt and debootstrap fetched.
var baseOmits = []string{
	"usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale",
	"var/cache/apt", "var/lib/apt/lists", "var/log",
}

// EnsureBase returns a tar archive of a minimal Debian system of a release, such as trixie, with a
// package manager. It replaces the image debian:RELEASE-slim where no registry is available.
// Caching and building are as in [Ensure]. The system has no mirror configured; [Sources] returns
// the host's.
func EnsureBase(ctx context.Context, release string, opts Options) (archive string, err error) {
	recipe, err := json.Marshal([]any{"base", baseVersion, release, baseFiles, baseOmits})
	if err != nil {
		return "", fmt.Errorf("debian base: %w", err)
	}
	sum := sha256.Sum256(recipe)
	build := func(b builder, ctx context.Context) error { return b.buildBase(ctx, release) }
	dir, err := cached(ctx, opts, hex.EncodeToString(sum[:8]), build)
	if err != nil {
		return "", fmt.Errorf("debian base: %w", err)
	}
	return filepath.Join(dir, baseName), nil
}

// Sources returns the content of a sources.list for a release of Debian, with the mirrors that this
// host's apt is configured for.
func Sources(ctx context.Context, release string) (string, error) {
	sources, err := hostSources(ctx, release)
	if err != nil {
		return "", err
	}
	return aptList(sources), nil
}

func (b builder) buildBase(ctx context.Context, release string) error {
	sources, err := hostSources(ctx, release)
	if err != nil {
		return err
	}
	if err := b.bootstrap(ctx, sources[0]); err != nil {
		return err
	}
	for _, dir := range baseOmits {
		path := filepath.Join(b.root(), dir)
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	if err := b.write(baseFiles); err != nil {
		return err
	}
	return b.run(ctx, "tar", "--numeric-owner", "--sort=name", "-C", b.root(), "-cf", filepath.Join(b.result(), baseName), ".")
}
