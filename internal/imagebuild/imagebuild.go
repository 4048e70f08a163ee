package imagebuild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vmop/sdk/internal/buildcache"
	"github.com/vmop/sdk/internal/debianguest"
)

// The releases of Debian that images are based on.
const (
	// Release is the one that the recipes name.
	Release = "trixie"
	// OldRelease is the previous one, with QEMU 7.2. Recipes for any release may copy from it.
	OldRelease = "bookworm"
)

// DebianImage returns the image of a release that recipes are based on.
func DebianImage(release string) string { return "docker.io/library/debian:" + release + "-slim" }

// GoImage is the image that recipes compile in.
const GoImage = "docker.io/library/golang:1.26-" + Release

// Where files of this host are mounted in images.
const (
	// modules has the Go modules that it has fetched.
	modules = "/var/cache/go-modules"
	// sourcesMount has its sources of Debian packages, a file for each release.
	sourcesMount = "/var/cache/apt/sources"
)

// Version is the version that the programs in the images report.
const Version = "test"

// epoch is the time of all files in the images, and of the images, in seconds since 1970.
const epoch = 1

// Options configure the builds.
type Options struct {
	// Context is the folder that recipes copy from, and that their names are relative to.
	Context string
	// Progress receives a line for each image. Nil discards it.
	Progress io.Writer
}

// Builder builds images, and keeps them until it is closed.
type Builder struct {
	options Options
	// cache keeps what is slow to fetch.
	cache string
	// work is the folder of this builder alone, lock marks it as in use.
	work   string
	lock   *os.File
	mounts []string
}

// Config is an image's configuration for running it.
type Config struct {
	User       string
	Entrypoint []string
}

// Container is a container that does not run, created from an image.
type Container struct {
	// Root is the folder with its files.
	Root string

	builder *Builder
	name    string
}

// Check reports what building lacks on this host, or nil.
func Check() error {
	if os.Geteuid() != 0 {
		return errors.New("building images needs root: run \"sudo make test-e2e\"")
	}
	if _, err := exec.LookPath("buildah"); err != nil {
		return fmt.Errorf("building images: run \"make deps-e2e\": %w", err)
	}
	return nil
}

// New creates the images that recipes are based on. The builder must be closed; the remains of a
// killed one are removed by the next.
func New(ctx context.Context, o Options) (_ *Builder, err error) {
	if err := Check(); err != nil {
		return nil, err
	}
	cache, err := buildcache.Folder("", "imagebuild")
	if err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	b := &Builder{options: o, cache: cache}
	if err := os.MkdirAll(b.path("debs", "partial"), 0o755); err != nil {
		return nil, err
	}
	if err := b.takeFolder(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if err := b.prepareMounts(ctx); err != nil {
		return nil, err
	}
	for _, release := range []string{Release, OldRelease} {
		if err := b.prepare(ctx, release); err != nil {
			return nil, fmt.Errorf("image of Debian %s: %w", release, err)
		}
	}
	if err := b.build(ctx, GoImage, b.work, "FROM "+DebianImage(Release)+`
ENV GOPATH=/go GOTOOLCHAIN=local GOPROXY=file://`+modules+`
ENV PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
`); err != nil {
		return nil, fmt.Errorf("image of Go: %w", err)
	}
	return b, nil
}

func (b *Builder) prepare(ctx context.Context, release string) error {
	list, err := debianguest.Sources(ctx, release)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.sources(), release+".list"), []byte(list), 0o644); err != nil {
		return err
	}
	base, err := debianguest.EnsureBase(ctx, release, debianguest.Options{})
	if err != nil {
		return err
	}
	return b.build(ctx, DebianImage(release), filepath.Dir(base), fmt.Sprintf("FROM scratch\nADD %s /\nRUN ln -sf %s/%s.list /etc/apt/sources.list\nCMD [\"bash\"]\n",
		filepath.Base(base), sourcesMount, release))
}

// Close removes the images.
func (b *Builder) Close() error {
	return errors.Join(os.RemoveAll(b.work), b.lock.Close())
}

// Build builds an image by a recipe, a file of the context, on a release of Debian.
func (b *Builder) Build(ctx context.Context, recipe, release, name string) error {
	// apt does not wait for another one that fetches packages.
	turn, err := buildcache.Lock(ctx, b.path("debs.lock"))
	if err != nil {
		return err
	}
	defer turn.Close()
	begin := time.Now()
	args := append([]string{"--file", filepath.Join(b.options.Context, recipe), "--tag", name, "--build-arg", "DEBIAN=" + release, "--build-arg", "VERSION=" + Version}, b.mounts...)
	if err := b.buildImage(ctx, args, b.options.Context); err != nil {
		return fmt.Errorf("%s on %s: %w", recipe, release, err)
	}
	fmt.Fprintf(b.options.Progress, "imagebuild: %s on %s took %s\n", recipe, release, time.Since(begin).Round(time.Second))
	return nil
}

// Push copies an image to a registry by plain HTTP.
func (b *Builder) Push(ctx context.Context, name, to string) error {
	_, err := b.buildah(ctx, "push", "--quiet", "--tls-verify=false", name, "docker://"+to)
	return err
}

// Digest returns an image's digest.
func (b *Builder) Digest(ctx context.Context, name string) (string, error) {
	out, err := b.buildah(ctx, "inspect", "--type", "image", "--format", "{{.FromImageDigest}}", name)
	return strings.TrimSpace(out), err
}

// Script builds the images by scripts/images, with settings for it as NAME=value, on the bases of a
// registry by plain HTTP.
func (b *Builder) Script(ctx context.Context, settings ...string) error {
	turn, err := buildcache.Lock(ctx, b.path("debs.lock"))
	if err != nil {
		return err
	}
	defer turn.Close()
	storage := fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", filepath.Join(b.work, "storage"), filepath.Join(b.work, "run"))
	file := filepath.Join(b.work, "storage.conf")
	if err := os.WriteFile(file, []byte(storage), 0o600); err != nil {
		return err
	}
	env := append([]string{"BUILDER=buildah", "CONTAINERS_STORAGE_CONF=" + file, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch)}, settings...)
	args := append([]string{"--tls-verify=false", "--network", "host"}, b.mounts...)
	_, err = b.runWith(ctx, env, b.options.Context, filepath.Join("scripts", "images"), args...)
	return err
}

// Config reads an image's configuration for running it.
func (b *Builder) Config(ctx context.Context, name string) (Config, error) {
	out, err := b.buildah(ctx, "inspect", "--type", "image", name)
	if err != nil {
		return Config{}, err
	}
	var v struct {
		OCIv1 struct {
			Config Config `json:"config"`
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		return Config{}, fmt.Errorf("image %s: %w", name, err)
	}
	return v.OCIv1.Config, nil
}

// Export writes an image to an archive in docker's format, which "ctr images import" and others
// read. The file must not exist.
func (b *Builder) Export(ctx context.Context, name, file string) error {
	_, err := b.buildah(ctx, "push", "--quiet", name, "docker-archive:"+file+":"+name)
	return err
}

// Import takes an image from an archive that [Builder.Export] wrote, under its name.
func (b *Builder) Import(ctx context.Context, file string) error {
	_, err := b.buildah(ctx, "pull", "--quiet", "docker-archive:"+file)
	return err
}

// Container creates a container from an image.
func (b *Builder) Container(ctx context.Context, image string) (*Container, error) {
	name, err := b.buildah(ctx, "from", "--pull-never", image)
	if err != nil {
		return nil, err
	}
	name = strings.TrimSpace(name)
	root, err := b.buildah(ctx, "mount", name)
	if err != nil {
		return nil, err
	}
	return &Container{Root: strings.TrimSpace(root), builder: b, name: name}, nil
}

// Run runs a command in the container, as the user of its image, and returns its output.
func (c *Container) Run(ctx context.Context, command ...string) (string, error) {
	return c.builder.buildah(ctx, append([]string{"run", c.name, "--"}, command...)...)
}

func (b *Builder) path(elements ...string) string {
	return filepath.Join(append([]string{b.cache}, elements...)...)
}

// takeFolder creates the builder's folder, and removes unused ones.
func (b *Builder) takeFolder(ctx context.Context) (err error) {
	// A folder without its lock would be taken for an unused one.
	turn, err := buildcache.Lock(ctx, b.path("lock"))
	if err != nil {
		return err
	}
	defer turn.Close()
	folders, err := filepath.Glob(b.path("work-*"))
	if err != nil {
		return err
	}
	now, cancel := context.WithCancel(ctx)
	cancel() // a held lock is not waited for
	for _, folder := range folders {
		lock, err := buildcache.Lock(now, filepath.Join(folder, "lock"))
		if errors.Is(err, context.Canceled) || errors.Is(err, fs.ErrNotExist) {
			continue // another builder uses it, or removes it
		}
		if err == nil {
			err = errors.Join(os.RemoveAll(folder), lock.Close())
		}
		if err != nil {
			return err
		}
	}
	if b.work, err = os.MkdirTemp(b.cache, "work-"); err != nil {
		return err
	}
	if err := os.Mkdir(b.temporary(), 0o700); err != nil {
		return err
	}
	b.lock, err = buildcache.Lock(ctx, filepath.Join(b.work, "lock"))
	return err
}

func (b *Builder) temporary() string { return filepath.Join(b.work, "tmp") }

func (b *Builder) sources() string { return filepath.Join(b.work, "sources") }

func (b *Builder) prepareMounts(ctx context.Context) error {
	// The recipes take Go modules from this host's cache.
	if _, err := b.run(ctx, b.options.Context, "go", "mod", "download"); err != nil {
		return err
	}
	out, err := b.run(ctx, b.options.Context, "go", "env", "-json", "GOROOT", "GOMODCACHE", "GOCACHE")
	if err != nil {
		return err
	}
	var env struct{ GOROOT, GOMODCACHE, GOCACHE string }
	if err := json.Unmarshal([]byte(out), &env); err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	if err := os.Mkdir(b.sources(), 0o755); err != nil {
		return err
	}
	for _, mount := range []string{
		b.sources() + ":" + sourcesMount + ":ro",
		b.path("debs") + ":/var/cache/apt/archives",
		env.GOROOT + ":/usr/local/go:ro",
		filepath.Join(env.GOMODCACHE, "cache", "download") + ":" + modules + ":ro",
		env.GOCACHE + ":/root/.cache/go-build",
	} {
		b.mounts = append(b.mounts, "--volume", mount)
	}
	return nil
}

func (b *Builder) build(ctx context.Context, name, dir, recipe string) error {
	file := filepath.Join(b.work, "Dockerfile")
	if err := os.WriteFile(file, []byte(recipe), 0o600); err != nil {
		return err
	}
	return b.buildImage(ctx, []string{"--file", file, "--tag", name}, dir)
}

func (b *Builder) buildImage(ctx context.Context, args []string, dir string) error {
	args = append([]string{"build", "--pull-never", "--network", "host", "--timestamp", strconv.Itoa(epoch)}, args...)
	_, err := b.buildah(ctx, append(args, dir)...)
	return err
}

// buildah runs buildah with a storage of its own. The storage driver and the isolation work in any
// container and on any file system.
func (b *Builder) buildah(ctx context.Context, args ...string) (string, error) {
	storage := []string{"--root", filepath.Join(b.work, "storage"), "--runroot", filepath.Join(b.work, "run"), "--storage-driver", "vfs"}
	return b.run(ctx, "", "buildah", append(storage, args...)...)
}

// run runs a program in a mount namespace of its own, so that its mounts vanish with it, and
// returns its output. When ctx ends, it is killed with all its children.
func (b *Builder) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	return b.runWith(ctx, nil, dir, name, args...)
}

func (b *Builder) runWith(ctx context.Context, env []string, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), "BUILDAH_ISOLATION=chroot", "TMPDIR="+b.temporary())
	cmd.Env = append(cmd.Env, env...)
	cmd.ExtraFiles = []*os.File{b.lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Unshareflags: syscall.CLONE_NEWNS}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, tail(stdout.String()), tail(stderr.String()))
	}
	return stdout.String(), nil
}

func tail(text string) string {
	const limit = 4096
	return text[max(0, len(text)-limit):]
}
