package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/buildcache"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CSIDriver is the name of the driver that [Node.StartCSI] starts, and of its storage class and its
// class of snapshots.
const CSIDriver = "csi.vmop.test"

// The programs of CSI: the driver of the nested module tools/csi, and the upstream sidecars.
const (
	csiDriver      = "driver"
	csiProvisioner = "csi-provisioner"
	csiSnapshotter = "csi-snapshotter"
	csiController  = "snapshot-controller"
	// csiDefinitions is a folder with the definitions of snapshots.
	csiDefinitions = "definitions"
	// csiClient is the module that has them.
	csiClient = "github.com/kubernetes-csi/external-snapshotter/client/v8"
)

var csiPackages = []string{
	"./driver",
	"github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner",
	"github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter",
	"github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller",
}

// StartCSI installs a CSI driver that can clone volumes and take snapshots of them, with the usual
// sidecars and controller, a storage class and a class of snapshots. All are named [CSIDriver].
// Programs that the cache lacks are built from their modules, which takes minutes.
func (n *Node) StartCSI(ctx context.Context, cacheDir string) error {
	programs, err := BuildCSI(ctx, cacheDir, n.progress)
	if err != nil {
		return err
	}
	// Building may take longer than a start may.
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, kind := range []string{"volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"} {
		if _, err := n.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(programs, csiDefinitions, "snapshot.storage.k8s.io_"+kind+".yaml")); err != nil {
			return err
		}
	}
	for _, kind := range []string{"volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"} {
		if _, err := n.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=1m", "crd/"+kind+".snapshot.storage.k8s.io"); err != nil {
			return err
		}
	}
	if err := n.addCSIDriver(ctx); err != nil {
		return err
	}
	user, err := n.Credentials("csi", "csi", []string{"system:masters"}, nil, nil)
	if err != nil {
		return err
	}
	const kubelet = "/var/lib/kubelet"
	socket := filepath.Join(kubelet, "plugins", CSIDriver, "csi.sock")
	driver, err := n.startInside(csiDriver, filepath.Join(programs, csiDriver), "--name="+CSIDriver, "--node="+Name, "--data="+n.path("csi"),
		"--endpoint="+socket, "--registration="+filepath.Join(kubelet, "plugins_registry", CSIDriver+"-reg.sock"))
	if err != nil {
		return err
	}
	// The sidecars wait for the driver, and the controller for none.
	for name, args := range map[string][]string{
		csiProvisioner: {"--csi-address=" + socket, "--retry-interval-start=200ms", "--feature-gates=Topology=false"},
		csiSnapshotter: {"--csi-address=" + socket, "--retry-interval-start=200ms"},
		csiController:  {"--retry-interval-start=200ms"},
	} {
		if _, err := n.startInside(name, append([]string{filepath.Join(programs, name), "--kubeconfig=" + user.Kubeconfig}, args...)...); err != nil {
			return err
		}
	}
	return n.await(ctx, driver, func(ctx context.Context) error {
		known, err := n.Client.StorageV1().CSINodes().Get(ctx, Name, metav1.GetOptions{})
		if err == nil && !slices.ContainsFunc(known.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == CSIDriver }) {
			err = errors.New("the kubelet does not know it")
		}
		return err
	})
}

func (n *Node) addCSIDriver(ctx context.Context) error {
	yes, no, policy := true, false, storagev1.FileFSGroupPolicy
	_, err := n.Client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: CSIDriver},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: &no, PodInfoOnMount: &no, FSGroupPolicy: &policy},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	remove, immediate := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	_, err = n.Client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: CSIDriver}, Provisioner: CSIDriver, ReclaimPolicy: &remove, VolumeBindingMode: &immediate, AllowVolumeExpansion: &yes,
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	file := n.path("snapshotclass.yaml")
	class := fmt.Sprintf("apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotClass\nmetadata: {name: %[1]s}\ndriver: %[1]s\ndeletionPolicy: Delete\n", CSIDriver)
	if err := writeFiles(map[string]string{file: class}); err != nil {
		return err
	}
	_, err = n.Kubectl(ctx, "apply", "-f", file)
	return err
}

// BuildCSI returns the folder with the programs of [Node.StartCSI] and the definitions of
// snapshots. They are built from the nested module tools/csi if the cache, which is that of
// [controlplane.BuildOptions], does not have them.
func BuildCSI(ctx context.Context, cacheDir string, progress io.Writer) (_ string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("programs of CSI (\"make csi\" builds them alone): %w", err)
		}
	}()
	source, err := csiSource()
	if err != nil {
		return "", err
	}
	key, err := csiKey(source)
	if err != nil {
		return "", err
	}
	if cacheDir == "" {
		cacheDir = os.Getenv("VMOP_CACHE")
	}
	cache, err := buildcache.Folder(cacheDir, "csi")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, key)
	if exists(dir) {
		return dir, nil
	}
	held, err := buildcache.Lock(ctx, filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer held.Close()
	if exists(dir) {
		return dir, nil // built by another process meanwhile
	}
	_, _ = fmt.Fprintln(progress, "node: building the programs of CSI for tests; this takes minutes, and happens once")
	// The folder appears complete or not at all.
	tmp, err := os.MkdirTemp(cache, ".build-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	build := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", tmp + "/"}, csiPackages...)
	if _, err := goTool(ctx, source, build...); err != nil {
		return "", err
	}
	client, err := goTool(ctx, source, "list", "-m", "-f", "{{.Dir}}", csiClient)
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(filepath.Join(tmp, csiDefinitions), os.DirFS(filepath.Join(strings.TrimSpace(client), "config", "crd"))); err != nil {
		return "", err
	}
	return dir, os.Rename(tmp, dir)
}

// csiSource finds the nested module above the working directory, as in tests.
func csiSource() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if source := filepath.Join(dir, "tools", "csi"); exists(filepath.Join(source, "go.mod")) {
			return source, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no folder above has tools/csi")
		}
		dir = parent
	}
}

func csiKey(source string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", filepath.Join("driver", "main.go")} {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(h, "%d:%s\n", len(data), data)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	// go waits for its compilers when it is interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in tools/csi: %w\n%s", args[0], errors.Join(err, ctx.Err()), stderr.String())
	}
	return string(out), nil
}
