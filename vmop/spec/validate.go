package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/internal/yamljson"
	"github.com/vmop/sdk/vmop/limits"
)

// Validate returns everything that is wrong with a machine's name and specification, or nothing.
// Fields without a value are judged by their default; the machine itself is not changed. The status
// is not checked.
//
// A machine without findings has a pod that Kubernetes accepts and, as far as that can be decided
// without files and devices, a command line that QEMU accepts.
func Validate(vm *VirtualMachine) field.ErrorList {
	if vm == nil {
		return missing(KindVirtualMachine)
	}
	vm = vm.DeepCopy()
	Default(vm)
	return validate(vm, validation.IsDNS1035Label)
}

// ValidateStored is [Validate] for a machine that the API server has stored: it
// finds nothing wrong with what [Amend] repairs, nor with a name that begins with
// a digit, which no Service can have (RFC 1035) and pods, claims and labels can
// (RFC 1123).
func ValidateStored(vm *VirtualMachine) field.ErrorList {
	if vm == nil {
		return missing(KindVirtualMachine)
	}
	amended := &VirtualMachine{ObjectMeta: vm.ObjectMeta}
	vm.Spec.DeepCopyInto(&amended.Spec)
	Default(amended)
	Amend(&amended.Spec)
	return ValidateAmended(amended)
}

// ValidateAmended is [ValidateStored] of a machine that has its defaults and on
// which [Amend] was called: it saves a copy.
func ValidateAmended(vm *VirtualMachine) field.ErrorList {
	if vm == nil {
		return missing(KindVirtualMachine)
	}
	if vm.Spec.RunnerTemplate == nil { // which it has with its defaults
		vm = vm.DeepCopy()
		Default(vm)
	}
	return validate(vm, isLabel)
}

// validate judges a machine that has its defaults.
func validate(vm *VirtualMachine, isName func(string) []string) field.ErrorList {
	if len(judge(vm, isName, false)) == 0 {
		return nil
	}
	return judge(vm, isName, true)
}

// judge finds the same with paths and without.
func judge(vm *VirtualMachine, isName func(string) []string, p paths) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateMachineName(&vm.ObjectMeta, isName, p)...)
	errs = append(errs, validateLengths(reflect.ValueOf(&vm.Spec), specBounds, p.at("spec").path)...)
	errs = append(errs, validateSpec(&vm.Spec, vm.Name, p.at("spec"))...)
	return errs
}

// validateMachineName checks the name for all that it becomes: the name of a
// Service, which is the strictest (a DNS label that starts with a letter), of
// pod, container and ConfigMap (a DNS label), and the value of a label.
func validateMachineName(meta *metav1.ObjectMeta, isName func(string) []string, p paths) field.ErrorList {
	path := p.at("metadata", "name")
	var errs field.ErrorList
	switch {
	case meta.Name == "":
		errs = append(errs, requiredAt(path, NameMissing))
	default:
		errs = append(errs, invalid(path, meta.Name, isName)...)
	}
	return append(errs, validateNamespace(meta, p)...)
}

func validateSpec(s *VirtualMachineSpec, name string, path spot) field.ErrorList {
	var errs field.ErrorList
	if s.DeletionPolicy != "" {
		errs = append(errs, oneOf(path.Child("deletionPolicy"), s.DeletionPolicy, DeletionRetain, DeletionDelete)...)
	}
	if s.Image != nil {
		errs = append(errs, validateImage(s.Image, path.Child("image"))...)
	}
	if s.Resources != nil {
		errs = append(errs, validateResources(s.Resources, path.Child("resources"))...)
	}
	if s.VirtualMachineClassName != "" {
		errs = append(errs, invalid(path.Child("virtualMachineClassName"), s.VirtualMachineClassName, isSubdomain)...)
	}
	if s.CoreFraction != "" {
		at := path.Child("coreFraction")
		if _, err := ParseCoreFraction(s.CoreFraction); err != nil {
			errs = append(errs, invalidAt(at, s.CoreFraction, err.Error()))
		}
		if s.NamesCompute() {
			errs = append(errs, forbiddenAt(at, "must not be given with spec.resources that name cpu or memory, which say what the pod requests"))
		}
	}
	if s.RunPolicy != "" {
		errs = append(errs, oneOf(path.Child("runPolicy"), s.RunPolicy,
			RunPolicyAlwaysOn, RunPolicyAlwaysOff, RunPolicyManual, RunPolicyAlwaysOnUnlessStoppedManually)...)
	}
	if d := s.Disruptions; d != nil && d.RestartApprovalMode != "" {
		errs = append(errs, oneOf(path.Child("disruptions", "restartApprovalMode"), d.RestartApprovalMode, RestartManual, RestartAutomatic)...)
	}
	errs = append(errs, validatePlacement(s, path)...)
	if src := s.RunnerTemplate.Source; src != "" {
		at := path.Child("runnerTemplate", "source")
		errs = append(errs, validateFile(src, "the template directory", at)...)
		errs = append(errs, limited(at, src, limits.TemplateName(src))...)
	}
	if lb := s.LoadBalancerService; lb != nil {
		errs = append(errs, validateLabels(withoutNull(lb.Labels), path.Child("loadBalancerService", "labels"))...)
		errs = append(errs, validateKeys(lb.Annotations, path.Child("loadBalancerService", "annotations"))...)
	}
	if s.CloudInit != nil {
		errs = append(errs, validateCloudInit(s.CloudInit, path.Child("cloudInit"))...)
	}
	if s.Provisioning != nil {
		errs = append(errs, validateProvisioning(s, path.Child("provisioning"))...)
	}
	for i, p := range s.Permissions {
		at := path.Child("permissions").Index(i)
		errs = append(errs, validateSubject(p.User, p.Role, at)...)
		for j, a := range p.May {
			errs = append(errs, oneOf(at.Child("may").Index(j), a,
				ActionStart, ActionStop, ActionReset, ActionAccessConsole, ActionTakeConsole, ActionAll)...)
		}
	}
	for i, pool := range s.Pools {
		errs = append(errs, invalid(path.Child("pools").Index(i), pool, isSubdomain)...)
	}
	if strings.ContainsRune(s.LoggingProperties, 0) {
		errs = append(errs, invalidAt(path.Child("loggingProperties"), s.LoggingProperties, "must not contain NUL bytes"))
	}
	errs = append(errs, validateBlockDevices(s, path.Child("blockDeviceRefs"))...)
	if n := len(s.VM.Disks) - countCDs(s.VM.Disks) + len(s.BlockDeviceRefs); len(s.VM.Shares) > 0 && n > limits.MaxDisksBesideShares {
		errs = append(errs, forbiddenAt(path.Child("vm", "shares"), fmt.Sprintf("a machine with shares has places for %d disks, and there are %d", limits.MaxDisksBesideShares, n)))
	}
	return append(errs, validateMachine(&s.VM, name, path.Child("vm"))...)
}

func validateImage(image *RunnerImage, path spot) field.ErrorList {
	var errs field.ErrorList
	switch {
	case image.Source != "" && (image.Repository != "" || image.Path != ""):
		errs = append(errs, invalidAt(path, image.Source, "has source as well as repository or path; give either source, or repository and path"))
	case image.Source == "" && image.Repository == "" && image.Path == "":
		errs = append(errs, requiredAt(path.Child("source"), "give either source, or repository and path; without image it is the operator's"))
	case image.Source == "" && image.Path == "":
		errs = append(errs, requiredAt(path.Child("path"), "repository goes with path"))
	case image.Source == "" && image.Repository == "":
		errs = append(errs, requiredAt(path.Child("repository"), "path goes with repository"))
	}
	for _, part := range []struct{ name, value string }{
		{"source", image.Source}, {"repository", image.Repository}, {"path", image.Path}, {"version", image.Version},
	} {
		if strings.ContainsFunc(part.value, isBlankOrControl) {
			errs = append(errs, invalidAt(path.Child(part.name), part.value, "must not contain spaces or control characters"))
		}
	}
	if image.PullPolicy != "" {
		errs = append(errs, oneOf(path.Child("pullPolicy"), image.PullPolicy,
			corev1.PullAlways, corev1.PullNever, corev1.PullIfNotPresent)...)
	}
	return errs
}

func validateResources(r *corev1.ResourceRequirements, path spot) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct {
		name string
		list corev1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, key := range sortedKeys(part.list) {
			at := path.Child(part.name).Key(string(key))
			q := part.list[key]
			errs = append(errs, invalid(at, string(key), isQualifiedName)...)
			errs = append(errs, validateAmount(q, at)...)
		}
	}
	if len(r.Claims) > 0 {
		errs = append(errs, forbiddenAt(path.Child("claims"), "the pod of a machine has no claims of devices that a container could name"))
	}
	for _, key := range sortedKeys(r.Requests) {
		request := r.Requests[key]
		if limit, ok := r.Limits[key]; ok && CompareQuantities(request, limit) > 0 {
			errs = append(errs, invalidAt(path.Child("requests").Key(string(key)), request.String(),
				"must not be greater than the limit "+limit.String()))
		}
	}
	return errs
}

func validateCloudInit(c *CloudInit, path spot) field.ErrorList {
	var errs field.ErrorList
	for _, key := range sortedKeys(c.MetaData) {
		at := path.Child("metaData").Key(key)
		if key == "" {
			errs = append(errs, invalidAt(at, key, "the key must not be empty"))
		}
		if strings.ContainsRune(key, 0) || strings.ContainsRune(c.MetaData[key], 0) {
			errs = append(errs, invalidAt(at, c.MetaData[key], "must not contain NUL bytes"))
		}
	}
	errs = append(errs, validateRawObject(c.UserData, path.Child("userData"))...)
	errs = append(errs, validateRawObject(c.NetworkConfig, path.Child("networkConfig"))...)
	for _, s := range []struct {
		inline bool
		name   string
		from   *CloudInitSource
	}{
		{c.MetaData != nil, "metaData", c.MetaDataFrom},
		{c.UserData != nil, "userData", c.UserDataFrom},
		{c.NetworkConfig != nil, "networkConfig", c.NetworkConfigFrom},
	} {
		if s.from == nil {
			continue
		}
		at := path.Child(s.name + "From")
		if s.inline {
			errs = append(errs, forbiddenAt(at, "there is "+s.name+" already; give one of the two"))
		}
		errs = append(errs, validateSecretKey(&s.from.SecretRef, at.Child("secretRef"))...)
	}
	return errs
}

func validateSecretKey(ref *SecretKeyReference, path spot) field.ErrorList {
	errs := validateSecretName(ref.Name, path.Child("name"))
	if ref.Key != "" {
		errs = append(errs, invalid(path.Child("key"), ref.Key, validation.IsConfigMapKey)...)
	}
	return errs
}

// validateRawObject checks that raw JSON is an object. The bytes themselves
// are not shown: user data often holds passwords.
func validateRawObject(raw *runtime.RawExtension, path spot) field.ErrorList {
	if raw == nil {
		return nil
	}
	if data := bytes.TrimSpace(raw.Raw); len(data) == 0 || data[0] != '{' || !json.Valid(data) {
		return field.ErrorList{typeInvalidAt(path, "(not shown)", "must be a mapping; for a script use the key runcmd or write_files")}
	}
	if err := yamljson.Check(raw.Raw); err != nil {
		return field.ErrorList{invalidAt(path, "(not shown)", err.Error())}
	}
	return nil
}
