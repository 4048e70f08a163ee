package controlplane

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/buildcache"
)

// The names of the programs, see [Programs.Path].
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
	KubeProxy         = "kube-proxy"
	Kubectl           = "kubectl"
)

// kubeall has all programs but kubectl, which would prepare at each call what the others need.
const kubeall = "kubeall"

// ProgramNames returns the names of all programs.
func ProgramNames() []string {
	return []string{Etcd, APIServer, ControllerManager, Scheduler, Kubelet, KubeProxy, Kubectl}
}

// Programs is a folder with the programs of Kubernetes.
type Programs struct {
	// Dir is the folder. It can be put into PATH.
	Dir string
}

// Path returns the path of one of [ProgramNames].
func (p Programs) Path(name string) string { return filepath.Join(p.Dir, name) }

// BuildOptions configure the build. The zero value is useful.
type BuildOptions struct {
	// CacheDir is the folder below which the programs are kept. Default: the environment variable
	// VMOP_CACHE, or "vmop" in the user's cache folder ([os.UserCacheDir]).
	CacheDir string
	// Progress, if not nil, receives lines while the programs are built.
	Progress io.Writer
}

// Ensure returns the programs. If the cache does not have them, it builds them from the nested
// module tools/, which takes about six minutes of processor time, at the lowest priority, and needs
// the module proxy. It may be called concurrently, also by several processes: one builds, the
// others wait. The working directory must be within this repository, as in tests.
func Ensure(ctx context.Context, o BuildOptions) (Programs, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.CacheDir == "" {
		o.CacheDir = os.Getenv("VMOP_CACHE")
	}
	work, err := os.Getwd()
	if err != nil {
		return Programs{}, fmt.Errorf("kubernetes for tests: %w", err)
	}
	src, err := readSource(work)
	if err != nil {
		return Programs{}, fmt.Errorf("kubernetes for tests: %w", err)
	}
	p, err := ensure(ctx, o, src.key(), src.build)
	if err != nil {
		return Programs{}, fmt.Errorf("kubernetes for tests (\"make kubeall\" builds it alone): %w", err)
	}
	return p, nil
}

const cacheKind = "controlplane"

// ensure is Ensure for any build, which must put kubeall and kubectl into a folder.
func ensure(ctx context.Context, o BuildOptions, key string, build func(ctx context.Context, dir string, progress io.Writer) error) (_ Programs, err error) {
	cache, err := buildcache.Folder(o.CacheDir, cacheKind)
	if err != nil {
		return Programs{}, err
	}
	p := Programs{Dir: filepath.Join(cache, key)}
	if exists(p.Dir) {
		return p, nil
	}
	held, err := buildcache.Lock(ctx, filepath.Join(cache, "lock"))
	if err != nil {
		return Programs{}, err
	}
	defer held.Close()
	if exists(p.Dir) {
		return p, nil // built by another process meanwhile
	}
	// The folder appears complete or not at all.
	tmp, err := os.MkdirTemp(cache, ".build-*")
	if err != nil {
		return Programs{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := build(ctx, tmp, o.Progress); err != nil {
		return Programs{}, err
	}
	for _, name := range ProgramNames() {
		if name == Kubectl {
			continue
		}
		if err := os.Symlink(kubeall, filepath.Join(tmp, name)); err != nil {
			return Programs{}, err
		}
	}
	return p, os.Rename(tmp, p.Dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

type source struct {
	dir     string            // of the nested module
	files   map[string]string // those that determine the result, by name
	version string            // of Kubernetes
}

var sourceFiles = []string{"go.mod", "go.sum", filepath.Join(kubeall, "main.go"), filepath.Join(Kubectl, "main.go")}

func readSource(start string) (source, error) {
	dir := start
	for !exists(filepath.Join(dir, "tools", kubeall, "main.go")) {
		parent := filepath.Dir(dir)
		if parent == dir {
			return source{}, fmt.Errorf("no folder above %s has tools/%s: %w", start, kubeall, fs.ErrNotExist)
		}
		dir = parent
	}
	s := source{dir: filepath.Join(dir, "tools"), files: map[string]string{}}
	for _, name := range sourceFiles {
		data, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			return source{}, err
		}
		s.files[name] = string(data)
	}
	for line := range strings.Lines(s.files["go.mod"]) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "k8s.io/kubernetes" {
			s.version = words[1]
		}
	}
	if strings.Count(s.version, ".") != 2 {
		return source{}, fmt.Errorf("%s/go.mod requires k8s.io/kubernetes at version %q", s.dir, s.version)
	}
	return s, nil
}

func (s source) key() string {
	h := sha256.New()
	for _, part := range slices.Concat(sourceFiles, s.flags()) {
		fmt.Fprintf(h, "%d:%s\n", len(part), part)
	}
	for _, name := range sourceFiles {
		fmt.Fprintf(h, "%d:%s\n", len(s.files[name]), s.files[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// flags are the flags of go build. Without a linked version, nodes and servers report
// v0.0.0-master, and kubectl does not understand its own.
func (s source) flags() []string {
	numbers := strings.Split(strings.TrimPrefix(s.version, "v"), ".")
	const version = "k8s.io/component-base/version."
	link := []string{"-s", "-w"}
	for _, v := range []string{
		version + "gitVersion=" + s.version,
		version + "gitMajor=" + numbers[0],
		version + "gitMinor=" + numbers[1],
		version + "gitTreeState=clean",
		version + "gitCommit=unknown",
		version + "buildDate=1970-01-01T00:00:00Z",
		"k8s.io/client-go/pkg/version.gitVersion=" + s.version,
	} {
		link = append(link, "-X", v)
	}
	return []string{"-trimpath", "-buildvcs=false", "-ldflags", strings.Join(link, " ")}
}

func (s source) build(ctx context.Context, dir string, progress io.Writer) error {
	_, _ = fmt.Fprintf(progress, "kubeall: building Kubernetes %s for tests; this takes minutes, and happens once\n", s.version)
	args := slices.Concat([]string{"-n", "19", "go", "build", "-v"}, s.flags(), []string{"-o", dir + string(filepath.Separator), "./" + kubeall, "./" + Kubectl})
	cmd := exec.CommandContext(ctx, "nice", args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	// go waits for its compilers when it is interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	last := relayProgress(stderr, progress)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go build in tools/: %w\n%s", errors.Join(err, ctx.Err()), last)
	}
	return nil
}

// relayProgress condenses the output of go build -v, a line for each package, and returns the last
// line.
func relayProgress(r io.Reader, progress io.Writer) string {
	const keep, every = 20, 200
	var last []string
	packages := 0
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if last = append(last, lines.Text()); len(last) > keep {
			last = last[1:]
		}
		if packages++; packages%every == 0 {
			_, _ = fmt.Fprintf(progress, "kubeall: %d packages done\n", packages)
		}
	}
	_, _ = io.Copy(io.Discard, r) // a line too long for the scanner must not block go
	return strings.Join(last, "\n")
}
