package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// StatusManager is the field manager that owns status.consoleUser.
	StatusManager = "vmop-console"
	// DefaultValidity is how long a password is valid by default. (VM-Operator:
	// passwordValidity.)
	DefaultValidity = 10 * time.Second
	// PasswordWait is how long to wait for a machine to apply a new password. The kubelet may
	// take longer to update the pod's file; after this time the password is returned
	// nevertheless.
	PasswordWait = 1500 * time.Millisecond
)

// ErrNotRunning is the error of [Open] for a machine that does not run.
var ErrNotRunning = errors.New("the machine does not run")

// Request is a request to open a console for a user, who may open it.
type Request struct {
	// VM is the machine as it is stored.
	VM *spec.VirtualMachine
	// User is the user's name.
	User string
	// Secret is the display secret of the machine, as [objects.PickDisplaySecret] finds it; nil
	// if it has none.
	Secret *corev1.Secret
	// Now is the time.
	Now time.Time
	// Validity is how long a new password can be used; 0 means [DefaultValidity].
	Validity time.Duration
	// Candidate is a random password, used if the display needs a new one: sixteen random bytes
	// in base64, as in VM-Operator. VNC uses only eight characters of a password.
	Candidate string
}

// Plan is what to do to open a console, in the order of the fields.
type Plan struct {
	// User is to be written to the machine's status; nil if it is there already.
	User *UserUpdate
	// NewPassword is to be written to the secret; nil if no password is needed or the stored one
	// can be used.
	NewPassword *PasswordUpdate
	// Serial is the value that status.displayPasswordSerial has, or exceeds, once the machine has
	// the new password; Wait is how long to wait for it. Both are 0 if there is nothing to wait
	// for.
	Serial int64
	Wait   time.Duration
	// Password is the password for the viewer; empty if the display has none.
	Password string
}

// UserUpdate is a new value of status.consoleUser.
type UserUpdate struct {
	Namespace, Name string
	UID             types.UID
	// ResourceVersion is that of the machine for which it was decided that the user may open the
	// console.
	ResourceVersion string
	User            string
}

// Patch returns the JSON merge patch for the subresource status of the machine, to be sent with
// the field manager [StatusManager]. The API server answers 409 Conflict if the machine has
// changed since.
func (u *UserUpdate) Patch() ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": metadata(u.UID, u.ResourceVersion),
		"status":   map[string]any{"consoleUser": u.User},
	})
}

// PasswordUpdate is a new password in a display secret.
type PasswordUpdate struct {
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	Password        string
	// Expiry is when the password expires, in whole seconds.
	Expiry time.Time
}

// Patch returns the JSON merge patch for the secret. The API server answers 409 Conflict if the
// secret has changed since, such as by another user's request.
func (u *PasswordUpdate) Patch() ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": metadata(u.UID, u.ResourceVersion),
		// Bytes are encoded as base64.
		"data": map[string][]byte{
			names.PasswordKey:       []byte(u.Password),
			names.PasswordExpiryKey: []byte(strconv.FormatInt(u.Expiry.Unix(), 10)),
		},
	})
}

// String omits the password, for logs.
func (u *PasswordUpdate) String() string {
	return fmt.Sprintf("new password in secret %s/%s until %s", u.Namespace, u.Name, u.Expiry.UTC().Format(time.RFC3339))
}

func metadata(uid types.UID, resourceVersion string) map[string]any {
	m := map[string]any{}
	if uid != "" {
		m["uid"] = uid
	}
	if resourceVersion != "" {
		m["resourceVersion"] = resourceVersion
	}
	return m
}

// Open decides with which password the user gets to the display.
//
// There is none if the machine has no display secret, or if it was started without one (a
// displayPasswordSerial of -1): passwords cannot be enabled while it runs. A stored password is
// used if it does not expire, or not before a new one would. Otherwise the candidate becomes the
// new password.
func Open(r Request) (Plan, error) {
	vm := r.VM
	if vm == nil {
		return Plan{}, errors.New("console: there is no virtual machine: the pointer is nil")
	}
	if !spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionRunning) {
		return Plan{}, fmt.Errorf("console of the virtual machine %s/%s: %w", vm.Namespace, vm.Name, ErrNotRunning)
	}
	if r.User == "" {
		return Plan{}, fmt.Errorf("console of the virtual machine %s/%s: a user is missing", vm.Namespace, vm.Name)
	}
	var p Plan
	if vm.Status.ConsoleUser != r.User {
		p.User = &UserUpdate{
			Namespace: vm.Namespace, Name: vm.Name, UID: vm.UID,
			ResourceVersion: vm.ResourceVersion, User: r.User,
		}
	}
	if r.Secret == nil || vm.Status.DisplayPasswordSerial < 0 {
		return p, nil
	}
	validity := r.Validity
	if validity <= 0 {
		validity = DefaultValidity
	}
	// Rounded up to whole seconds: a validity below one second must not become 0.
	until := time.Unix(r.Now.Add(validity+time.Second-1).Unix(), 0)
	if password := r.Secret.Data[names.PasswordKey]; len(password) > 0 && lasts(r.Secret, until) {
		p.Password = string(password)
		return p, nil
	}
	if r.Candidate == "" {
		return Plan{}, fmt.Errorf("console of the virtual machine %s/%s: a candidate for its password is missing", vm.Namespace, vm.Name)
	}
	p.NewPassword = &PasswordUpdate{
		Namespace: r.Secret.Namespace, Name: r.Secret.Name, UID: r.Secret.UID,
		ResourceVersion: r.Secret.ResourceVersion, Password: r.Candidate, Expiry: until,
	}
	p.Serial, p.Wait, p.Password = vm.Status.DisplayPasswordSerial+1, PasswordWait, r.Candidate
	return p, nil
}

// lasts reports whether the secret's password can be used after the given time. Expiries are in
// QEMU's format: now, never, +<seconds>, or a Unix time. The start of a relative one is not
// known.
func lasts(secret *corev1.Secret, until time.Time) bool {
	expiry, given := secret.Data[names.PasswordExpiryKey]
	if !given || string(expiry) == "never" {
		return true
	}
	if len(expiry) > 0 && expiry[0] == '+' {
		return false
	}
	seconds, err := strconv.ParseInt(string(expiry), 10, 64)
	return err == nil && seconds > until.Unix()
}
