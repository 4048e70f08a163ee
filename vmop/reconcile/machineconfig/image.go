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

// ImageLocation returns where a pod has a CD image or a kernel that a manifest names: an absolute
// path, or the URL itself.
func ImageLocation(name string) (string, error) { return imageLocation(name, ImageRepositoryDir, true) }

// RepositoryFiles returns the fields of a machine that name files of the image repository, by
// their JSON paths. Refused locations are left out.
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

func ofRepository(name string, urls bool) bool {
	location, err := imageLocation(name, ImageRepositoryDir, urls)
	return err == nil && InRepository(location)
}

// InRepository reports whether a location is the image repository's.
func InRepository(location string) bool {
	return location == ImageRepositoryDir || strings.HasPrefix(location, ImageRepositoryDir+"/")
}

// MayUseRepository reports whether a machine may come to name a file of the image repository
// while it runs: another CD is inserted without a restart, and the files that a template of the
// runner's image names are not known here.
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

// imageLocation turns a manifest's name of a CD image or a kernel into what QEMU opens: a path,
// or the URL itself for http and https where urls is true.
//
// As in VM-Operator the name is a URI relative to its image repository, so that %20 stands for a
// space; percent signs that belong to no such code stand for themselves. Unlike there, a name may
// contain any printable character, and a relative one cannot leave the repository by "..".
// Absolute paths are taken as they are.
//
// Symbolic links in the repository are followed wherever they lead. Kubernetes' own volumes
// consist of them ("..data"), and a user who can create one there can as well replace the file.
// Access is restricted elsewhere: in a cluster by what the administrator allows, and on a single
// host by the rights of the user, who runs QEMU.
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
	// The rules also apply to what a code stands for.
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

func fileFault(file string) string {
	switch {
	case strings.ContainsFunc(file, unicode.IsControl):
		return "contains a control character"
	case !utf8.ValidString(file): // neither YAML nor JSON could represent it
		return "is not UTF-8"
	case !path.IsAbs(file) && hasParent(file):
		return "contains .., which could lead out of the image repository: want a path below it, or an absolute path"
	}
	return ""
}

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
