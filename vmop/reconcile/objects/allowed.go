package objects

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// Refusal is something in a manifest that the administrator does not allow.
type Refusal struct {
	// Field is its JSON path, Why what is wrong with it.
	Field, Why string
	// Setting is the option of the operator's configuration that allows it.
	Setting string
}

func (r Refusal) String() string {
	return fmt.Sprintf("%s: %s; the operator's option %s allows it", r.Field, r.Why, r.Setting)
}

// Refusals returns what a machine, with its defaults applied, requests and may not have, in the
// order of the fields.
func Refusals(vm *spec.VirtualMachine, s Settings) []Refusal {
	a := &s.Allowed
	if a.Everything {
		return nil
	}
	var out []Refusal
	refuse := func(field, setting, why string, args ...any) {
		out = append(out, Refusal{Field: field, Why: fmt.Sprintf(why, args...), Setting: setting})
	}
	image := RunnerImage(vm, &s)
	switch {
	case owned(image, &s) || IsFormerRunner(image): // no pod is created with the latter
	case !matches(a.Images, image):
		refuse("spec.image", "allowedImages", "the image %s is not the operator's", image)
	case s.Privileged && s.KVMResource == "" && vm.Spec.VM.Accelerator != spec.AcceleratorTCG:
		refuse("spec.image", "trustAuthors", "a privileged pod has no other image than the operator's, and %s would be root on its node; kvmResource does without privileges", image)
	}
	placement(vm, a, refuse)
	if lb := vm.Spec.LoadBalancerService; lb != nil && s.LoadBalancer != nil {
		for _, key := range slices.Sorted(maps.Keys(lb.Annotations)) {
			if !matches(a.LoadBalancerAnnotations, key) {
				refuse("spec.loadBalancerService.annotations["+key+"]", "allowedLoadBalancerAnnotations", "the annotations of load balancers are the operator's")
			}
		}
	}
	networks(vm, a, refuse)
	images(vm, a, refuse)
	for i := range vm.Spec.VM.Shares {
		if c := vm.Spec.VM.Shares[i].PersistentVolumeClaim; c != nil && !matches(a.Shares, c.ClaimName) {
			refuse(fmt.Sprintf("spec.vm.shares[%d].persistentVolumeClaim", i), "allowedShares", "the claim %s is not for shared folders: it could have the disks of another machine", c.ClaimName)
		}
	}
	return out
}

func owned(image string, s *Settings) bool {
	return image == s.RunnerImage || s.RunnerImage == "" && image == DefaultImage() || slices.Contains(slices.Collect(maps.Values(s.RunnerImages)), image)
}

func placement(vm *spec.VirtualMachine, a *Allowed, refuse func(field, setting, why string, args ...any)) {
	if vm.Spec.NodeName != "" && !a.NodeName {
		refuse("spec.nodeName", "allowNodeName", "it bypasses the scheduler; use spec.nodeSelector or spec.affinity")
	}
	for i, t := range vm.Spec.Tolerations {
		at := fmt.Sprintf("spec.tolerations[%d]", i)
		switch {
		case t.Key == "" && !slices.Contains(a.Tolerations, "*"):
			refuse(at, "allowedTolerations", "it is for every taint, also those that keep machines off nodes of the cluster itself")
		case t.Key != "" && !matches(a.Tolerations, t.Key):
			refuse(at, "allowedTolerations", "nodes with the taint %s are not for machines", t.Key)
		}
	}
	if class := vm.Spec.PriorityClassName; class != "" && !matches(a.PriorityClasses, class) {
		refuse("spec.priorityClassName", "allowedPriorityClasses", "the pods of others would give way to those of priority class %s", class)
	}
}

func networks(vm *spec.VirtualMachine, a *Allowed, refuse func(field, setting, why string, args ...any)) {
	tap := inNodeNetwork(vm)
	for i, n := range vm.Spec.VM.Networks {
		at := fmt.Sprintf("spec.vm.networks[%d]", i)
		if n.Tap != nil && !matches(a.Bridges, n.Tap.Bridge) {
			refuse(at+".tap.bridge", "allowedBridges", "the bridge %s of the node is not for machines", n.Tap.Bridge)
		}
		if n.User != nil && len(n.User.HostForwards) > 0 && tap && !a.HostForwards {
			refuse(at+".user.hostForwards", "allowHostForwards", "beside a tap interface these are ports of the node")
		}
	}
}

func images(vm *spec.VirtualMachine, a *Allowed, refuse func(field, setting, why string, args ...any)) {
	check := func(field, name string) {
		if name == "" {
			return
		}
		location, err := machineconfig.ImageLocation(name)
		if err != nil {
			return // an error of the specification
		}
		if path.IsAbs(location) {
			if !within(append([]string{"/opt", machineconfig.ImageRepositoryDir, machineconfig.DiskMountDir}, a.ImagePaths...), location) {
				refuse(field, "allowedImagePaths", "%s is a file of the pod and neither in the image repository nor below /opt", location)
			}
			return
		}
		if host := hostOf(location); local(host) && !matches(a.ImageHosts, host) {
			refuse(field, "allowedImageHosts", "the server %s is the pod's own or its link's", host)
		}
	}
	// The runner checks the address that a server's name resolves to; see imagesource.LocalNamed.
	source := func(field, location string) {
		if why, setting := RefuseSource(location, a); why != "" {
			refuse(field, setting, "%s", why)
		}
	}
	for i, d := range vm.Spec.VM.Disks {
		at := fmt.Sprintf("spec.vm.disks[%d]", i)
		if d.Cdrom != nil {
			check(at+".cdrom.image", d.Cdrom.Image)
		}
		if d.Image != nil {
			source(at+".image.source", d.Image.Source)
		}
		if c := d.ContainerDisk; c != nil {
			source(at+".containerDisk.image", limits.ContainerSource(c.Image))
		}
	}
	if k := vm.Spec.VM.KernelBoot; k != nil {
		check("spec.vm.kernelBoot.kernel", k.Kernel)
		check("spec.vm.kernelBoot.initrd", k.Initrd)
	}
}

// RefuseSource returns why a pod may not fetch an image from its location, see
// [limits.ImageSource]; empty if it may. The setting is the operator's option by which the
// administrator allows it.
func RefuseSource(location string, a *Allowed) (why, setting string) {
	if image, ok := strings.CutPrefix(location, "oci://"); ok {
		location = registryOf(image)
	}
	if a.Everything || location == "" || limits.LocalImage(location) {
		return "", "" // a public registry, or an error of the specification
	}
	if host := hostOf(location); local(host) && !matches(a.ImageHosts, host) {
		return fmt.Sprintf("the server %s is the pod's own or its link's", host), "allowedImageHosts"
	}
	return "", ""
}

func registryOf(image string) string {
	host, _, ok := strings.Cut(image, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" || strings.HasPrefix(image, "oci-") {
		return ""
	}
	return "https://" + host + "/"
}

func within(folders []string, file string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return strings.HasPrefix(file, strings.TrimSuffix(path.Clean(folder), "/")+"/")
	})
}

func hostOf(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

// local reports whether a host is reached only from the pod or its node. The C library also
// accepts unusual forms of addresses: 127.1, 0x7f000001, 2130706433. Names are not resolved here;
// network policies have to restrict them.
func local(host string) bool {
	address, err := netip.ParseAddr(host)
	if err != nil {
		last := host[strings.LastIndex(host, ".")+1:]
		return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || last != "" && last[0] >= '0' && last[0] <= '9'
	}
	address = address.Unmap()
	return address.IsLoopback() || address.IsUnspecified() || address.IsLinkLocalUnicast() || address.IsMulticast() || address.Zone() != "" ||
		// Translated and tunnelled forms of any IPv4 address.
		embedding.Contains(address) || sixToFour.Contains(address)
}

var (
	embedding = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

func matches(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return glob(pattern, text) })
}

// glob reports whether text matches a pattern, in which an asterisk is any text.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return true
}
