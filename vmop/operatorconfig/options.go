package operatorconfig

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/reconcile/console"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	manager    = "/Manager"
	controller = manager + "/Controller"
	reconciler = controller + "/Reconciler"
	secrets    = reconciler + "/DisplaySecretReconciler"
	oldSecrets = controller + "/DisplaySecretMonitor"
	guiSocket  = manager + "/GuiSocketServer"
	guiServer  = manager + "/GuiHttpServer"
	webConsole = guiServer + "/ConsoleWeblet/WebConsole"
	access     = webConsole + "/ComponentCollector/VmAccess"
	oldAccess  = webConsole + "/ComponentCollector/VmViewer"
	operator   = "/Operator"
)

var options = map[string]map[string]option{
	manager: {
		"clusterName": func(p *parser, v value) {
			p.note(v, "it is shown by VM-Operator's web interface, which is not part of this operator")
		},
	},
	controller: {
		"namespace": func(p *parser, v value) {
			if s, ok := p.namespace(v); ok {
				p.managerNamespace = s
			}
		},
	},
	reconciler: {
		"runnerDataPvc": func(p *parser, v value) {
			p.fields(v, map[string]option{"storageClassName": func(p *parser, v value) {
				if s, ok := p.text(v); ok && p.valid(v, s, "the name of a storage class", len(validation.IsDNS1123Subdomain(s)) == 0) {
					p.config.Settings.RunnerDataStorageClass = s
				}
			}})
		},
		// Some of VM-Operator's examples have it.
		"runnerData": func(p *parser, v value) {
			p.warn(v, "unknown option, ignored; did you mean runnerDataPvc? (VM-Operator's examples have runnerData, which never had an effect)")
		},
		"cpuOvercommit":       func(p *parser, v value) { p.factor(v, &p.config.Settings.CPUOvercommit) },
		"ramOvercommit":       func(p *parser, v value) { p.factor(v, &p.config.Settings.RAMOvercommit) },
		"loadBalancerService": loadBalancer,
		"loggingProperties": func(p *parser, v value) {
			if s, ok := p.text(v); ok {
				p.config.Settings.LoggingProperties = s
				p.note(v, "only VM-Operator's runner, a Java program, reads it")
			}
		},
	},
	secrets: {
		"passwordValidity": func(p *parser, v value) {
			p.seconds(v, &p.config.Console.PasswordValidity)
			p.note(v, consolesOnly)
		},
	},
	oldSecrets: {
		"passwordValidity": func(p *parser, v value) {
			p.note(v, "VM-Operator moved this option to "+secrets)
			p.seconds(v, &p.oldValidity)
		},
	},
	access:    viewer,
	oldAccess: viewer,
	operator: {
		"runnerImage": func(p *parser, v value) {
			if s, ok := p.text(v); ok && p.valid(v, s, "an image such as registry.example.org/vmop-runner:1.0", isImage(s)) {
				p.config.Settings.RunnerImage = s
			}
		},
		"runnerPullPolicy": func(p *parser, v value) {
			policies := []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
			if s, ok := p.text(v); ok && p.valid(v, s, "Always, IfNotPresent or Never", slices.Contains(policies, corev1.PullPolicy(s))) {
				p.config.Settings.RunnerPullPolicy = corev1.PullPolicy(s)
			}
		},
		"runnerImages": func(p *parser, v value) {
			images := map[string]string{}
			for _, e := range p.pairs(v) {
				s, ok := p.text(e)
				if ok && p.valid(e, e.key, "an image, or the beginning of some with an asterisk behind it", isImage(e.key)) &&
					p.valid(e, s, "an image such as registry.example.org/vmop-runner:1.0", isImage(s)) {
					images[e.key] = s
				}
			}
			p.config.Settings.RunnerImages = images
		},
		"imageNamespace": func(p *parser, v value) {
			if s, ok := p.text(v); ok && p.valid(v, s, "the name of a namespace", len(validation.IsDNS1123Label(s)) == 0) {
				p.config.Settings.ImageNamespace = s
			}
		},
		"trustAuthors": func(p *parser, v value) {
			p.flag(v, &p.config.Settings.Allowed.Everything)
		},
		"allowedImages":          func(p *parser, v value) { p.patterns(v, &p.config.Settings.Allowed.Images) },
		"allowedBridges":         func(p *parser, v value) { p.patterns(v, &p.config.Settings.Allowed.Bridges) },
		"allowNodeName":          func(p *parser, v value) { p.flag(v, &p.config.Settings.Allowed.NodeName) },
		"allowedTolerations":     func(p *parser, v value) { p.patterns(v, &p.config.Settings.Allowed.Tolerations) },
		"allowedPriorityClasses": func(p *parser, v value) { p.patterns(v, &p.config.Settings.Allowed.PriorityClasses) },
		"allowedPodAnnotations":  func(p *parser, v value) { p.patterns(v, &p.config.Settings.Allowed.PodAnnotations) },
		"allowHostForwards":      func(p *parser, v value) { p.flag(v, &p.config.Settings.Allowed.HostForwards) },
		"allowOpenDisplays":      func(p *parser, v value) { p.flag(v, &p.config.Settings.Allowed.OpenDisplays) },
		"allowedImageHosts":      func(p *parser, v value) { p.patterns(v, &p.config.Settings.Allowed.ImageHosts) },
		"allowedImagePaths":      func(p *parser, v value) { p.patterns(v, &p.config.Settings.Allowed.ImagePaths) },
		"allowedShares":          func(p *parser, v value) { p.patterns(v, &p.config.Settings.Allowed.Shares) },
		"allowedLoadBalancerAnnotations": func(p *parser, v value) {
			p.patterns(v, &p.config.Settings.Allowed.LoadBalancerAnnotations)
		},
		"cloningProvisioners": func(p *parser, v value) { p.patterns(v, &p.config.Settings.CloningProvisioners) },
		"displayHostPorts":    func(p *parser, v value) { p.ports(v, &p.config.Settings.DisplayHostPorts) },
		"kvmResource": func(p *parser, v value) {
			if s, ok := p.text(v); ok && p.valid(v, s, "a resource of nodes such as devices.kubevirt.io/kvm", isNodeResource(s)) {
				p.config.Settings.KVMResource = corev1.ResourceName(s)
			}
		},
		"privileged": func(p *parser, v value) {
			p.flag(v, &p.config.Settings.Privileged)
		},
		"takeOverData": func(p *parser, v value) {
			p.flag(v, &p.config.Settings.TakeOverData)
		},
		"deviceGroups": func(p *parser, v value) {
			p.config.Settings.DeviceGroups = nil
			for _, item := range p.items(v) {
				if n, ok := p.whole(item, 1, math.MaxInt32); ok {
					p.config.Settings.DeviceGroups = append(p.config.Settings.DeviceGroups, int64(n))
				}
			}
		},
		"namespaces": func(p *parser, v value) {
			p.namespaces(v, &p.config.Namespaces)
		},
		"excludeNamespaces": func(p *parser, v value) {
			p.namespaces(v, &p.config.ExcludeNamespaces)
		},
		"concurrency": func(p *parser, v value) {
			if n, ok := p.whole(v, 1, 1000); ok {
				p.config.Concurrency = n
			}
		},
		"operationsKept": func(p *parser, v value) {
			if n, ok := p.whole(v, 1, 10000); ok {
				p.config.Operations.Keep = n
			}
		},
		"operationsKeptFor": func(p *parser, v value) {
			if s, ok := p.text(v); ok {
				d, err := time.ParseDuration(s)
				if p.valid(v, s, "a duration of at least a second, such as 24h or 90m", err == nil && d >= time.Second) {
					p.config.Operations.For = d
				}
			}
		},
	},
}

// consolesOnly is the note on options that the operator reads only for other programs.
const consolesOnly = "it is for programs that open consoles; the operator opens none, and vmop-cli spice and vnc follow it where it stands in the ConfigMap vm-operator of the machine's namespace"

// viewer are the options for opening consoles in VM-Operator's web interface.
var viewer = map[string]option{
	"displayResource": func(p *parser, v value) {
		p.note(v, consolesOnly)
		p.fields(v, map[string]option{"preferredIpVersion": func(p *parser, v value) {
			switch f := console.Family(v.node.Value); f {
			case console.IPv4, console.IPv6:
				p.config.Console.PreferredFamily = f
			default:
				p.fault(v, "found %s, want ipv4 or ipv6", shown(v))
			}
		}})
	},
	"deleteConnectionFile": func(p *parser, v value) {
		p.note(v, consolesOnly)
		if b, ok := p.truth(v); ok {
			p.config.Console.KeepFile = !b
		}
	},
	"syncPreviewsFor": func(p *parser, v value) {
		p.note(v, "it is for VM-Operator's web interface, which is not part of this operator")
	},
}

func known() map[string]bool {
	out := map[string]bool{root: true, guiSocket: true}
	for path := range options {
		for ; path != ""; path = path[:strings.LastIndex(path, "/")] {
			out[path] = true
		}
	}
	return out
}

// webInterface returns the part of VM-Operator's web interface that a component belongs to; "" if
// none.
func webInterface(path string) string {
	for _, tree := range []string{guiSocket, guiServer} {
		if path == tree || strings.HasPrefix(path, tree+"/") {
			return tree
		}
	}
	return ""
}
