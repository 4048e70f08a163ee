package machineconfig

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/spec"
)

// ImageLocation is where a pod has a CD image or a kernel that a manifest names: an
// absolute path, or the URL itself.
func ImageLocation(name string) (string, error) { return imageLocation(name, ImageRepositoryDir, true) }

// RepositoryFiles are the fields of a machine that name files of the image
// repository, by their JSON paths. A location that is refused is none.
func RepositoryFiles(vm *spec.VirtualMachine) []string {
	if vm == nil {
		return nil
	}
	var out []string
	if k := vm.Spec.VM.KernelBoot; k != nil {
		if ofRepository(k.Kernel, false) {
			out = append(out, "spec.vm.kernelBoot.kernel")
		}
		if ofRepository(k.Initrd, false) {
			out = append(out, "spec.vm.kernelBoot.initrd")
		}
	}
	for i := range vm.Spec.VM.Disks {
		if cd := vm.Spec.VM.Disks[i].Cdrom; cd != nil && ofRepository(cd.Image, true) {
			out = append(out, "spec.vm.disks["+strconv.Itoa(i)+"].cdrom.image")
		}
	}
	return out
}

// ofRepository reports whether a file that a manifest names is in the image repository.
func ofRepository(name string, urls bool) bool {
	location, err := imageLocation(name, ImageRepositoryDir, urls)
	return err == nil && InRepository(location)
}

// InRepository reports whether a location is the image repository's.
func InRepository(location string) bool {
	return location == ImageRepositoryDir || strings.HasPrefix(location, ImageRepositoryDir+"/")
}

// MayUseRepository reports whether a machine may come to name a file of the image repository while
// it runs: another CD comes without a restart, and the files that a template of the runner's image
// names are not known here.
func MayUseRepository(vm *spec.VirtualMachine) bool {
	if vm == nil {
		return false
	}
	if t := vm.Spec.RunnerTemplate; t != nil && !qemucmd.IsStandardTemplate(t.Source) {
		return true
	}
	return slices.ContainsFunc(vm.Spec.VM.Disks, func(d spec.Disk) bool { return d.Cdrom != nil }) ||
		len(RepositoryFiles(vm)) > 0
}

// imageLocation turns what a manifest calls a CD image or a kernel into what
// QEMU opens: a path, or the URL itself for http and https where urls is true.
//
// VM-Operator resolves the name as a URI against its image repository, so that
// %20 stands for a space. This is kept, and percent signs that belong to no such
// code stand for themselves. Unlike there, a name may contain any printable
// character, and a relative one does not lead out of the repository by "..".
// Absolute paths are taken as they are.
//
// Symbolic links in the repository are followed wherever they lead. Kubernetes'
// own volumes consist of them ("..data"), and who can make one there can as well
// put another file in its place. What can be reached is bounded elsewhere: in a
// cluster by what the administrator allows, and on a single host by the rights of
// the user, who runs QEMU.
func imageLocation(name, repository string, urls bool) (string, error) {
	if name == "" {
		return "", nil
	}
	file := name
	if scheme, isURL := limits.URLScheme(name); isURL {
		switch scheme {
		case "http", "https":
			return httpLocation(name, urls)
		case "file":
			u, err := url.Parse(name)
			if err != nil || u.Host != "" && u.Host != "localhost" || !path.IsAbs(u.Path) {
				return "", fmt.Errorf("%q is not a file URL such as file:///images/cd.iso", name)
			}
			file = u.EscapedPath()
		default:
			return "", fmt.Errorf("%q has the unsupported scheme %s: want http, https or file", name, name[:len(scheme)])
		}
	}
	if fault := fileFault(file); fault != "" {
		return "", fmt.Errorf("%q %s", name, fault)
	}
	// A code is no way around the rules for what it stands for.
	if decoded, err := url.PathUnescape(file); err == nil && fileFault(decoded) == "" {
		file = decoded
	}
	if path.IsAbs(file) {
		return path.Clean(file), nil
	}
	if repository == "" {
		return "", fmt.Errorf("%q is relative to an image repository, and none is given", name)
	}
	return path.Join(repository, file), nil
}

// fileFault returns why a path is refused; "" if it is not.
func fileFault(file string) string {
	switch {
	case strings.ContainsFunc(file, unicode.IsControl):
		return "contains a control character"
	case !utf8.ValidString(file): // neither YAML nor JSON could hold it
		return "is not UTF-8"
	case !path.IsAbs(file) && hasParent(file):
		return "contains .., which could lead out of the image repository: want a path below it, or an absolute path"
	}
	return ""
}

// hasParent reports whether an element of a path is the parent directory.
func hasParent(file string) bool {
	for element := range strings.SplitSeq(file, "/") {
		if element == ".." {
			return true
		}
	}
	return false
}

func httpLocation(name string, urls bool) (string, error) {
	if !urls {
		return "", fmt.Errorf("%q is a URL: want a path, QEMU loads this file from no server", name)
	}
	if u, err := url.Parse(name); err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is not a URL such as https://example.org/cd.iso", name)
	}
	return name, nil
}
