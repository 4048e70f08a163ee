package objects_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/spec/spectest"
	"pgregory.net/rapid"
)

// What is asked for, the field that is refused, and the setting that allows it.
func TestRefusals(t *testing.T) {
	lb := func(s *objects.Settings) { s.LoadBalancer = &objects.LoadBalancer{} }
	for _, c := range []struct {
		name, manifest, field, setting string
		settings                       func(*objects.Settings)
		allow                          objects.Allowed
	}{
		{name: "nothing", manifest: "spec: {vm: {maximumCpus: 1, networks: [{user: {hostForwards: [{hostPort: 2222, guestPort: 22}]}}]}}"},
		{
			name: "an image", manifest: "spec: {image: {source: attacker.example/suid-root}, vm: {maximumCpus: 1}}",
			field: "spec.image", setting: "allowedImages", allow: objects.Allowed{Images: []string{"attacker.example/*"}},
		},
		{
			name: "an image in a privileged pod", manifest: "spec: {image: {source: attacker.example/suid-root}, vm: {maximumCpus: 1}}",
			settings: func(s *objects.Settings) { s.Privileged, s.Allowed.Images = true, []string{"*"} },
			field:    "spec.image", setting: "trustAuthors", allow: objects.Allowed{Everything: true},
		},
		{
			name: "a node", manifest: "spec: {nodeName: control-plane-1, vm: {maximumCpus: 1}}",
			field: "spec.nodeName", setting: "allowNodeName", allow: objects.Allowed{NodeName: true},
		},
		{
			name: "a taint", manifest: "spec: {tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}], vm: {maximumCpus: 1}}",
			settings: func(s *objects.Settings) { s.Allowed.Tolerations = []string{"dedicated"} },
			field:    "spec.tolerations[0]", setting: "allowedTolerations", allow: objects.Allowed{Tolerations: []string{"node-role.kubernetes.io/*"}},
		},
		{
			name: "all taints", manifest: "spec: {tolerations: [{operator: Exists}], vm: {maximumCpus: 1}}",
			settings: func(s *objects.Settings) { s.Allowed.Tolerations = []string{"dedicated", "**"} },
			field:    "spec.tolerations[0]", setting: "allowedTolerations", allow: objects.Allowed{Tolerations: []string{"*"}},
		},
		{
			name: "a priority", manifest: "spec: {priorityClassName: system-node-critical, vm: {maximumCpus: 1}}",
			field: "spec.priorityClassName", setting: "allowedPriorityClasses", allow: objects.Allowed{PriorityClasses: []string{"system-*"}},
		},
		{
			name: "a bridge", manifest: "spec: {vm: {maximumCpus: 1, networks: [{tap: {bridge: cni0}}]}}",
			field: "spec.vm.networks[0].tap.bridge", setting: "allowedBridges", allow: objects.Allowed{Bridges: []string{"br*", "cni0"}},
		},
		{
			name: "ports of the node", manifest: "spec: {vm: {maximumCpus: 1, networks: [{tap: {}}, {user: {hostForwards: [{hostPort: 30000, guestPort: 22}]}}]}}",
			settings: func(s *objects.Settings) { s.Allowed.Bridges = []string{"br0"} },
			field:    "spec.vm.networks[1].user.hostForwards", setting: "allowHostForwards", allow: objects.Allowed{Bridges: []string{"*"}, HostForwards: true},
		},
		{
			name: "an annotation", manifest: "spec: {loadBalancerService: {annotations: {aws-load-balancer-internal: null}}, vm: {maximumCpus: 1}}", settings: lb,
			field: "spec.loadBalancerService.annotations[aws-load-balancer-internal]", setting: "allowedLoadBalancerAnnotations", allow: objects.Allowed{LoadBalancerAnnotations: []string{"aws-*"}},
		},
		{
			name: "the token", manifest: "spec: {vm: {maximumCpus: 1, disks: [{cdrom: {image: /var/run/secrets/kubernetes.io/serviceaccount/token}}]}}",
			field: "spec.vm.disks[0].cdrom.image", setting: "allowedImagePaths", allow: objects.Allowed{ImagePaths: []string{"/var/run"}},
		},
		{
			name: "a claim as a folder", manifest: "spec: {vm: {maximumCpus: 1, shares: [{tag: src, persistentVolumeClaim: {claimName: web-disk-0}}]}}",
			field: "spec.vm.shares[0].persistentVolumeClaim", setting: "allowedShares", allow: objects.Allowed{Shares: []string{"web-*"}},
		},
		{
			name: "a way out of /opt", manifest: "spec: {vm: {maximumCpus: 1, disks: [{cdrom: {image: /opt/../etc/passwd}}]}}",
			field: "spec.vm.disks[0].cdrom.image", setting: "allowedImagePaths", allow: objects.Allowed{ImagePaths: []string{"/etc/"}},
		},
		{
			name: "a kernel", manifest: "spec: {vm: {maximumCpus: 1, kernelBoot: {kernel: vmlinuz, initrd: /etc/opt/vmrunner/config.yaml}}}",
			field: "spec.vm.kernelBoot.initrd", setting: "allowedImagePaths", allow: objects.Allowed{ImagePaths: []string{"/etc/opt"}},
		},
		{
			name: "the metadata of the node", manifest: "spec: {vm: {maximumCpus: 1, disks: [{cdrom: {image: 'http://169.254.169.254/latest'}}]}}",
			field: "spec.vm.disks[0].cdrom.image", setting: "allowedImageHosts", allow: objects.Allowed{ImageHosts: []string{"169.254.169.254"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			vm := fixture.Parse(t, "vm.yaml", "apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: a}\n"+c.manifest+"\n")
			spec.Default(vm)
			s := objects.Settings{RunnerImage: "registry.example.org/runner:1.0"}
			if c.settings != nil {
				c.settings(&s)
			}
			got := objects.Refusals(vm, s)
			if c.field == "" {
				if len(got) > 0 {
					t.Errorf("%v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Field != c.field || got[0].Setting != c.setting || !strings.Contains(got[0].String(), c.setting) {
				t.Fatalf("%+v, want %s by %s", got, c.field, c.setting)
			}
			s.Allowed = c.allow
			if got := objects.Refusals(vm, s); len(got) > 0 {
				t.Errorf("allowed by %s: %v", c.setting, got)
			}
		})
	}
}

var hosts = map[string]bool{
	"127.0.0.1": true, "127.8.9.10": true, "localhost": true, "LOCALHOST.": true, "a.localhost": true, "[::1]": true, "[::ffff:127.0.0.1]": true,
	"0.0.0.0": true, "0": true, "127.1": true, "2130706433": true, "0x7f000001": true, "0x7f.1": true, "169.254.169.254": true, "[fe80::1%25eth0]": true,
	"[64:ff9b::7f00:1]": true, "[2002:7f00:1::]": true, "a@127.0.0.1": true,
	"192.0.2.7": false, "10.0.0.8": false, "images.example.org": false, "[2001:db8::1]": false, "1.example.org": false,
}

func TestServersOfImages(t *testing.T) {
	for host, local := range hosts {
		vm := &spec.VirtualMachine{}
		vm.Spec.VM.Disks = []spec.Disk{{Cdrom: &spec.Cdrom{Image: "http://" + host + "/cd.iso"}}}
		spec.Default(vm)
		if got := len(objects.Refusals(vm, objects.Settings{})) > 0; got != local {
			t.Errorf("%s is refused: %v", host, got)
		}
	}
}

// What is allowed more is never refused, and where authors are trusted nothing is.
func TestToAllowMoreRefusesLess(t *testing.T) {
	pattern := rapid.SliceOfN(rapid.SampledFrom([]string{"*", "br*", "/", "a*b", "localhost"}), 0, 2)
	rapid.Check(t, func(t *rapid.T) {
		vm := spectest.VirtualMachine().Draw(t, "machine")
		spec.Default(vm)
		s := objects.Settings{RunnerImage: "runner", Privileged: rapid.Bool().Draw(t, "privileged"), LoadBalancer: &objects.LoadBalancer{}}
		none := objects.Refusals(vm, s)
		s.Allowed = objects.Allowed{
			Images: pattern.Draw(t, "images"), Bridges: pattern.Draw(t, "bridges"), NodeName: rapid.Bool().Draw(t, "node"),
			Tolerations: pattern.Draw(t, "tolerations"), PriorityClasses: pattern.Draw(t, "priorities"), HostForwards: rapid.Bool().Draw(t, "forwards"),
			ImageHosts: pattern.Draw(t, "hosts"), ImagePaths: pattern.Draw(t, "paths"), Shares: pattern.Draw(t, "shares"), LoadBalancerAnnotations: pattern.Draw(t, "annotations"),
		}
		for _, r := range objects.Refusals(vm, s) {
			if !slices.ContainsFunc(none, func(n objects.Refusal) bool { return n.Field == r.Field }) {
				t.Fatalf("%v is refused though more is allowed", r)
			}
			if r.Setting == "" || !strings.HasPrefix(r.Field, "spec.") {
				t.Fatalf("%+v", r)
			}
		}
		if s.Allowed.Everything = true; len(objects.Refusals(vm, s)) > 0 {
			t.Fatal("authors are trusted")
		}
	})
}
