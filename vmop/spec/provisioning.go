package spec

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/internal/userdata"
	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/names"
)

// HasSeed reports whether a machine has a NoCloud seed for cloud-init.
func (s *VirtualMachineSpec) HasSeed() bool {
	return s.CloudInit != nil || s.Provisioning != nil && s.Provisioning.Type != ProvisioningSysprepRef
}

// HasAnswerCD reports whether a machine has a CD with the answers of Windows' setup.
func (s *VirtualMachineSpec) HasAnswerCD() bool {
	return s.Provisioning != nil && s.Provisioning.Type == ProvisioningSysprepRef
}

// Secret is the Secret that the guest is provisioned from; nil if there is none.
func (p *Provisioning) Secret() *ProvisioningSecret {
	switch {
	case p == nil:
		return nil
	case p.Type == ProvisioningUserDataRef:
		return p.UserDataRef
	case p.Type == ProvisioningSysprepRef:
		return p.SysprepRef
	}
	return nil
}

// UserDataKey is the key with the user data in a Secret that a guest is provisioned
// from.
const UserDataKey = "userData"

// UserDataSecret is the name of the Secret that the operator makes of the user data of
// a manifest. No machine has it: theirs are DNS labels. Where it is taken, or what was
// there has only just been replaced, a number follows.
func UserDataSecret(vmName string) string { return vmName + ".user-data" }

// InlineUserData is the user data that is in the manifest itself; empty if there is
// none.
func (s *VirtualMachineSpec) InlineUserData() string {
	if s.Provisioning == nil || s.Provisioning.Type != ProvisioningUserData {
		return ""
	}
	return s.Provisioning.UserData
}

// SecretTypes are the types that the Secret of a type of provisioning may have:
// ours first.
func (t ProvisioningType) SecretTypes() []string {
	switch t {
	case ProvisioningUserDataRef:
		return []string{names.SecretTypeCloudInit, names.SecretTypeCloudInitDeckhouse}
	case ProvisioningSysprepRef:
		return []string{names.SecretTypeSysprep, names.SecretTypeSysprepDeckhouse}
	}
	return nil
}

// ProvisioningWarning returns why cloud-init would ignore the user data of a manifest; empty if it
// would not. It is no error: the machine starts with it. The text has nothing of the data.
func ProvisioningWarning(s *VirtualMachineSpec) string {
	if s == nil || s.Provisioning == nil || s.Provisioning.UserData == "" {
		return ""
	}
	if err := userdata.Check([]byte(s.Provisioning.UserData)); err != nil {
		return err.Error()
	}
	return ""
}

func validateProvisioning(s *VirtualMachineSpec, path spot) field.ErrorList {
	p := s.Provisioning
	var errs field.ErrorList
	if s.CloudInit != nil {
		errs = append(errs, forbiddenAt(path, "there is cloudInit already; give either cloudInit or provisioning"))
	}
	if wrong := oneOf(path.Child("type"), p.Type, ProvisioningUserData, ProvisioningUserDataRef, ProvisioningSysprepRef); wrong != nil {
		return append(errs, wrong...)
	}
	for _, f := range []struct {
		of    ProvisioningType
		name  string
		given bool
		what  string
	}{
		{ProvisioningUserData, "userData", p.UserData != "", "write what cloud-init is to read"},
		{ProvisioningUserDataRef, "userDataRef", p.UserDataRef != nil, "name the Secret with the user data"},
		{ProvisioningSysprepRef, "sysprepRef", p.SysprepRef != nil, "name the Secret with unattend.xml"},
	} {
		switch {
		case f.given && f.of != p.Type:
			errs = append(errs, forbiddenAt(path.Child(f.name), fmt.Sprintf("goes with the type %s, and the type is %s", f.of, p.Type)))
		case !f.given && f.of == p.Type:
			errs = append(errs, requiredAt(path.Child(f.name), f.what+", as the type "+string(p.Type)+" asks"))
		}
	}
	errs = append(errs, validateUserData(p.UserData, path.Child("userData"))...)
	for _, r := range []struct {
		name string
		ref  *ProvisioningSecret
	}{{"userDataRef", p.UserDataRef}, {"sysprepRef", p.SysprepRef}} {
		if r.ref == nil {
			continue
		}
		at := path.Child(r.name)
		if r.ref.Kind != "" {
			errs = append(errs, oneOf(at.Child("kind"), r.ref.Kind, names.KindSecret)...)
		}
		errs = append(errs, validateSecretName(r.ref.Name, at.Child("name"))...)
	}
	if p.Type == ProvisioningSysprepRef && countCDs(s.VM.Disks) >= limits.MaxCDs {
		errs = append(errs, forbiddenAt(path.Child("sysprepRef"), fmt.Sprintf(
			"is a CD, and vm.disks has %d of them: together there may be %d", countCDs(s.VM.Disks), limits.MaxCDs)))
	}
	return errs
}

// validateUserData checks the size in bytes, which the bound of a definition counts
// in characters, and does not show what there is.
func validateUserData(text string, path spot) field.ErrorList {
	if len(text) > limits.MaxInlineUserData {
		return field.ErrorList{invalidAt(path, "(not shown)", fmt.Sprintf(
			"has %d bytes, and may have %d: put it into a Secret, and name that with the type UserDataRef", len(text), limits.MaxInlineUserData))}
	}
	if strings.ContainsRune(text, 0) {
		return field.ErrorList{invalidAt(path, "(not shown)", "must not contain NUL bytes")}
	}
	return nil
}

func validateSecretName(name string, path spot) field.ErrorList {
	if name == "" {
		return field.ErrorList{requiredAt(path, "name the Secret, which is in the machine's namespace")}
	}
	return invalid(path, name, isSubdomain)
}

func countCDs(disks []Disk) int {
	n := 0
	for i := range disks {
		if disks[i].Cdrom != nil {
			n++
		}
	}
	return n
}
