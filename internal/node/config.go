package node

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/vmop/sdk/internal/controlplane"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	pauseImage       = "vmop.test/pause:1"
	resolvConf       = "resolv.conf"
)

// containerdConfig is containerd's configuration. Without restrict_oom_score_adj no container
// starts where even root may not lower that score, as in another container.
func containerdConfig(dir string, deviceOwnership bool) string {
	return fmt.Sprintf(`version = 2
root = %q
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt"]
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  stream_server_address = "127.0.0.1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  device_ownership_from_security_context = %t
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`, filepath.Join(dir, "state", "containerd"), containerdSocket, pauseImage, deviceOwnership, cniDir, filepath.Join(dir, "cni"))
}

// networkConfig is the pods' network: a bridge on the node.
func networkConfig(pods string) string {
	return fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "vmop", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/cni"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`, pods)
}

// kubeletConfig is the kubelet's configuration. Imported images cannot be pulled again, so the
// kubelet must not remove them when the disk is full.
func kubeletConfig(dir, group string, c controlplane.Credentials) (string, error) {
	type object = map[string]any
	data, err := json.MarshalIndent(object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"address":    "0.0.0.0",
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": c.CAFile},
		},
		"authorization":               object{"mode": "Webhook"},
		"tlsCertFile":                 c.CertFile,
		"tlsPrivateKeyFile":           c.KeyFile,
		"cgroupDriver":                "cgroupfs",
		"cgroupRoot":                  "/" + group,
		"failCgroupV1":                false,
		"failSwapOn":                  false,
		"containerRuntimeEndpoint":    "unix://" + containerdSocket,
		"clusterDNS":                  []string{"10.96.0.10"},
		"clusterDomain":               "cluster.local",
		"resolvConf":                  filepath.Join(dir, resolvConf),
		"podLogsDir":                  "/var/log/pods",
		"imageGCHighThresholdPercent": 100,
		"evictionHard":                object{"memory.available": "100Mi"},
		"nodeStatusUpdateFrequency":   "5s",
		"registryPullQPS":             0,
		"eventRecordQPS":              0,
		"serializeImagePulls":         false,
		"logging":                     object{"verbosity": 0},
	}, "", "  ")
	return string(data), err
}
