//go:build e2e

package node

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/internal/controlplane"
	"github.com/vmop/sdk/internal/testbin"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asChild makes the test binary a program that runs a node, for the test that
// kills it.
const asChild = "VMOP_TEST_NODE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		if err := runNode(); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		select {} // until it is killed
	}
	os.Exit(m.Run())
}

func runNode() error {
	n, err := Start(context.Background(), Options{})
	if err != nil {
		return err
	}
	if err := startPod(context.Background(), n); err != nil {
		return err
	}
	_, err = fmt.Println(n.slot.dir, n.ControlPlane.Dir())
	return err
}

// startPod runs a pod of an ordinary user with a volume of each mode, in a
// namespace where no other is admitted.
func startPod(ctx context.Context, n *Node) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "strict", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if _, err := n.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	image := n.path("disk.img")
	if err := os.WriteFile(image, []byte("a disk"), 0o600); err != nil {
		return err
	}
	if err := n.AddStorageClass(ctx, StorageClass{Name: "local", Default: true}); err != nil {
		return err
	}
	if err := n.AddStorageClass(ctx, StorageClass{Name: "disk", Image: image}); err != nil {
		return err
	}
	for name, mode := range map[string]corev1.PersistentVolumeMode{"block": corev1.PersistentVolumeBlock, "files": corev1.PersistentVolumeFilesystem} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: &mode,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		}}
		if mode == corev1.PersistentVolumeBlock {
			class := "disk"
			claim.Spec.StorageClassName = &class
		}
		if _, err := n.Client.CoreV1().PersistentVolumeClaims("strict").Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	yes, no, user := true, false, int64(65532)
	claim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "idle"}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "idle", Image: pauseImage, ImagePullPolicy: corev1.PullNever,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			VolumeMounts:    []corev1.VolumeMount{{Name: "files", MountPath: "/files"}},
			VolumeDevices:   []corev1.VolumeDevice{{Name: "block", DevicePath: "/dev/block"}},
		}},
		Volumes: []corev1.Volume{{Name: "files", VolumeSource: claim("files")}, {Name: "block", VolumeSource: claim("block")}},
	}}
	if _, err := n.Client.CoreV1().Pods("strict").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	_, err := n.Kubectl(ctx, "wait", "--namespace=strict", "--for=condition=Ready", "pod/idle", "--timeout=3m")
	if err != nil {
		said, _ := n.Kubectl(context.Background(), "describe", "--namespace=strict", "pods,pvc")
		err = fmt.Errorf("%w\n%s", err, said)
	}
	return err
}

// devicesOf returns the loop devices of a slot's node: that of the volume and the
// one that the kubelet put on top.
func devicesOf(t *testing.T, s *slot) []loop {
	t.Helper()
	devices, err := loopsOf(s.dir)
	if err != nil || len(devices) != 2 {
		t.Errorf("the node has the loop devices %+v, %v; want two", devices, err)
	}
	return devices
}

// remains lists what is left on the host of the node of a slot.
func remains(t *testing.T, s *slot, devices []loop) []string {
	t.Helper()
	var left []string
	for _, pattern := range []string{s.dir, "/sys/class/net/" + s.link(), "/sys/fs/cgroup/*/" + s.name(), "/sys/fs/cgroup/" + s.name()} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, found...)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), s.dir) {
		left = append(left, "mounts")
	}
	all, err := loops()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range devices {
		if slices.Contains(all, l) {
			left = append(left, fmt.Sprintf("%+v", l))
		}
	}
	return left
}

func TestNode(t *testing.T) {
	n, err := Start(t.Context(), Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Stop() }()
	if err := startPod(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	// The test reaches pods, and pods reach the API server at its Service.
	out, err := n.Kubectl(t.Context(), "get", "pod", "--namespace=strict", "idle", "-o", "jsonpath={.status.podIP}")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(out, "1"), time.Minute)
	if err == nil {
		_ = conn.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the pod at %s: %v", out, err)
	}
	rules, err := n.run(t.Context(), "iptables-save", "-t", "nat")
	if err != nil || !strings.Contains(rules, n.slot.hostAddress().String()) {
		t.Errorf("no rule leads from the Service to the API server: %v\n%s", err, rules)
	}
	for _, name := range []string{"containerd", "kubelet", "kube-proxy", controlplane.APIServer} {
		if log := n.Log(name); log == "" || strings.HasPrefix(log, "open ") {
			t.Errorf("%s has no log: %s", name, log)
		}
	}
	s := n.slot
	devices := devicesOf(t, s)
	for range 2 {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}
	if left := remains(t, s, devices); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A test binary that is killed stops nothing. Its node's programs go with it, and
// the next holder of its slot removes the rest.
func TestKilledTestLeavesNoNode(t *testing.T) {
	cmd := testbin.Self(t.Context(), t, asChild+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var folder, dir string
	if _, perr := fmt.Sscan(line, &folder, &dir); err != nil || perr != nil {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
	devices := devicesOf(t, &slot{dir: folder})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := takeSlot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s.dir != folder {
		t.Errorf("slot %d is taken, want that of %s", s.number, folder)
	}
	if err := s.release(ctx); err != nil {
		t.Error(err)
	}
	if left := remains(t, s, devices); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && (strings.Contains(string(data), s.dir+"/") || strings.Contains(string(data), dir+"/")) {
			t.Errorf("still running: %q", data)
		}
	}
}
