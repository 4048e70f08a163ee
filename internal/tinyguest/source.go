package tinyguest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is where a kernel comes from, and an identity that changes with the kernel.
type source struct {
	id       string
	dir      string   // an unpacked package, or
	packages []string // names to try with apt-get, in this order
}

// The packages that depend on the distribution's current kernel. The first known one is taken:
// Debian's and Ubuntu's names differ.
var packageNames = map[Flavor][]string{
	FlavorCloud:   {"linux-image-cloud-amd64", "linux-image-virtual"},
	FlavorGeneric: {"linux-image-amd64", "linux-image-generic"},
}

func chooseSource(o Options) (source, error) {
	if o.KernelPackageDir != "" {
		dir, err := filepath.Abs(o.KernelPackageDir)
		if err != nil {
			return source{}, err
		}
		k, err := findKernel(dir)
		if err != nil {
			return source{}, err
		}
		info, err := os.Stat(k.image)
		if err != nil {
			return source{}, err
		}
		id := fmt.Sprintf("dir %s %d %d", k.image, info.Size(), info.ModTime().UnixNano())
		return source{id: id, dir: dir}, nil
	}
	names, ok := packageNames[o.Flavor]
	if !ok {
		return source{}, fmt.Errorf("flavor %q: unknown", o.Flavor)
	}
	// Containers with different distributions may share a cache. Newer kernels of a distribution
	// are not fetched.
	release, err := os.ReadFile("/etc/os-release")
	if err != nil && !os.IsNotExist(err) {
		return source{}, err
	}
	var id []string
	for line := range strings.Lines(string(release)) {
		if strings.HasPrefix(line, "ID=") || strings.HasPrefix(line, "VERSION_ID=") {
			id = append(id, strings.TrimSpace(line))
		}
	}
	return source{id: "apt " + strings.Join(append(id, names...), " "), packages: names}, nil
}

type kernelFiles struct {
	image   string // bzImage
	modules string // folder below which its modules lie
}

// findKernel returns the newest kernel below root.
func findKernel(root string) (kernelFiles, error) {
	var found kernelFiles
	var newest int64
	consider := func(image, release string) {
		info, err := os.Stat(image)
		if err != nil || !info.Mode().IsRegular() || (found.image != "" && info.ModTime().UnixNano() <= newest) {
			return
		}
		// Unreadable ones are common: Ubuntu protects kernels from users.
		f, err := os.Open(image)
		if err != nil {
			return
		}
		_ = f.Close()
		for _, lib := range []string{"lib", "usr/lib"} {
			modules := filepath.Join(root, lib, "modules", release)
			if exists(modules) {
				found, newest = kernelFiles{image: image, modules: modules}, info.ModTime().UnixNano()
				return
			}
		}
	}
	images, _ := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*")) // the pattern is valid
	for _, image := range images {
		consider(image, strings.TrimPrefix(filepath.Base(image), "vmlinuz-"))
	}
	for _, lib := range []string{"lib", "usr/lib"} {
		images, _ = filepath.Glob(filepath.Join(root, lib, "modules", "*", "vmlinuz"))
		for _, image := range images {
			consider(image, filepath.Base(filepath.Dir(image)))
		}
	}
	if found.image == "" {
		return found, fmt.Errorf("%w: %s has no readable boot/vmlinuz-* or lib/modules/*/vmlinuz with modules beside it", ErrNoKernel, root)
	}
	return found, nil
}

// fetch unpacks the first known package and the ones with its modules below dir.
func (s source) fetch(ctx context.Context, dir string, progress io.Writer) error {
	for _, tool := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: %s is not here to fetch one; set Options.KernelPackageDir (tinyguest --kernel-package-dir) to an unpacked kernel package, or to / for the installed kernel", ErrNoKernel, tool)
		}
	}
	var image string
	for _, name := range s.packages {
		depends, err := dependencies(ctx, name)
		if err != nil {
			return err
		}
		if i := firstWithPrefix(depends, "linux-image-"); i != "" {
			image = i
			break
		}
	}
	if image == "" {
		return fmt.Errorf("%w: the package lists know none of %s; run apt-get update, or set Options.KernelPackageDir", ErrNoKernel, strings.Join(s.packages, ", "))
	}
	fetch := []string{image}
	depends, err := dependencies(ctx, image)
	if err != nil {
		return err
	}
	// Ubuntu has the modules in a package of their own.
	if m := firstWithPrefix(depends, "linux-modules-"); m != "" {
		fetch = append(fetch, m)
	}
	return download(ctx, dir, progress, fetch...)
}

func download(ctx context.Context, dir string, progress io.Writer, names ...string) error {
	fmt.Fprintf(progress, "fetching %s\n", strings.Join(names, " "))
	packages := filepath.Join(dir, "packages")
	if err := os.Mkdir(packages, 0o700); err != nil {
		return err
	}
	// apt-get checks the signatures of what it fetches.
	if _, err := run(ctx, packages, append([]string{"apt-get", "--quiet", "download"}, names...)...); err != nil {
		return fmt.Errorf("%w (out-of-date package lists: apt-get update)", err)
	}
	return filepath.WalkDir(packages, func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".deb" {
			return err
		}
		_, err = run(ctx, dir, "dpkg-deb", "--extract", path, dir)
		return err
	})
}

func dependencies(ctx context.Context, name string) ([]string, error) {
	out, err := run(ctx, "", "apt-cache", "depends", name)
	if ctx.Err() != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if _, name, ok := strings.Cut(line, "Depends: "); ok && !strings.Contains(line, "Pre") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names, nil
}

func firstWithPrefix(names []string, prefix string) string {
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			return n
		}
	}
	return ""
}

// run executes a program and returns its output; an error has its standard error.
func run(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	var complaint strings.Builder
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", argv[0], err, strings.TrimSpace(complaint.String()))
	}
	return out, nil
}
