package console_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/spec"
)

var now = time.Unix(1_800_000_000, 0)

func secret(data ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "desk-display-secret", Namespace: "lab", UID: "s1", ResourceVersion: "3"}, Data: map[string][]byte{}}
	for i := 0; i+1 < len(data); i += 2 {
		s.Data[data[i]] = []byte(data[i+1])
	}
	return s
}

func serial(n int64) option {
	return func(vm *spec.VirtualMachine) { vm.Status.DisplayPasswordSerial = n }
}

func TestOpen(t *testing.T) {
	const stored, candidate = "stored-password", "candidate"
	with := func(expiry string) *corev1.Secret {
		return secret(names.PasswordKey, stored, names.PasswordExpiryKey, expiry)
	}
	for _, c := range []struct {
		name     string
		vm       *spec.VirtualMachine
		secret   *corev1.Secret
		password string
	}{
		{"no secret", machine(running), nil, ""},
		{"a display that was started without", machine(running, serial(-1)), with("never"), ""},
		{"never expires", machine(running), with("never"), stored},
		{"no expiry", machine(running), secret(names.PasswordKey, stored), stored},
		{"expires late", machine(running), with("1800000031"), stored},
		{"expires before a new one would", machine(running), with("1800000030"), candidate},
		{"has expired", machine(running), with("now"), candidate},
		{"expires some time after it was set", machine(running), with("+3600"), candidate},
		{"an expiry that nobody can read", machine(running), with("tomorrow"), candidate},
		{"an empty one", machine(running), with(""), candidate},
		{"a secret without a password", machine(running), secret(), candidate},
		{"an empty password", machine(running), secret(names.PasswordKey, "", names.PasswordExpiryKey, "never"), candidate},
	} {
		p, err := console.Open(console.Request{VM: c.vm, User: "ann", Secret: c.secret, Now: now, Validity: 30 * time.Second, Candidate: candidate})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if p.Password != c.password || (p.NewPassword != nil) != (c.password == candidate) || p.User == nil {
			t.Errorf("%s: %+v", c.name, p)
		}
		if p.NewPassword == nil {
			if p.Serial != 0 || p.Wait != 0 {
				t.Errorf("%s: waits: %+v", c.name, p)
			}
			continue
		}
		if p.Serial != 1 || p.Wait != console.PasswordWait || p.NewPassword.Password != candidate || !p.NewPassword.Expiry.Equal(now.Add(30*time.Second)) {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}

func TestOpenIsRefused(t *testing.T) {
	expired := secret(names.PasswordKey, "x", names.PasswordExpiryKey, "now")
	for _, c := range []struct {
		name string
		r    console.Request
		want string
	}{
		{"stopped", console.Request{VM: machine(), User: "ann", Candidate: "c"}, "console of the virtual machine lab/desk: the machine does not run"},
		{"nobody", console.Request{VM: machine(running), Candidate: "c"}, "a user is missing"},
		{"no candidate", console.Request{VM: machine(running), User: "ann", Secret: expired, Now: now}, "a candidate for its password is missing"},
	} {
		p, err := console.Open(c.r)
		if err == nil || !strings.Contains(err.Error(), c.want) || p != (console.Plan{}) {
			t.Errorf("%s: %+v, %v", c.name, p, err)
		}
		if errors.Is(err, console.ErrNotRunning) != (c.name == "stopped") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestTheSameUserIsWrittenOnce(t *testing.T) {
	for user, want := range map[string]bool{"ann": false, "bob": true} {
		p, err := console.Open(console.Request{VM: machine(running, consoleUser("ann")), User: user, Now: now})
		if err != nil || (p.User != nil) != want {
			t.Errorf("%s: %+v, %v", user, p.User, err)
		}
	}
}

// What is handed out can be used for as long as was asked for, and the secret
// that the plan leads to is used the next time if it still can be.
func TestPasswordsLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := now.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "now")))
		validity := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "validity"))
		expiry := rapid.SampledFrom([]string{"now", "never", "+10", "", strconv.FormatInt(at.Unix()+rapid.Int64Range(-90, 90).Draw(t, "offset"), 10)}).Draw(t, "expiry")
		s := secret(names.PasswordKey, "old", names.PasswordExpiryKey, expiry)
		r := console.Request{VM: machine(running), User: "ann", Secret: s, Now: at, Validity: validity, Candidate: "new"}
		p, err := console.Open(r)
		if err != nil {
			t.Fatal(err)
		}
		if validity == 0 {
			validity = console.DefaultValidity
		}
		if n := p.NewPassword; n != nil {
			if left := n.Expiry.Sub(at); left < validity || left > validity+time.Second || n.Expiry.Nanosecond() != 0 {
				t.Fatalf("expires in %v, want %v", left, validity)
			}
			expiry = strconv.FormatInt(n.Expiry.Unix(), 10)
		}
		if seconds, err := strconv.ParseInt(expiry, 10, 64); err == nil && time.Unix(seconds, 0).Sub(at) < validity {
			t.Fatalf("%s is sooner than %v", expiry, validity)
		}
		r.Secret = secret(names.PasswordKey, p.Password, names.PasswordExpiryKey, expiry)
		r.Validity = validity / 2
		if again, err := console.Open(r); err != nil || validity >= 4*time.Second && (again.NewPassword != nil || again.Password != p.Password) {
			t.Fatalf("again: %+v, %v", again, err)
		}
	})
}

func TestPatches(t *testing.T) {
	p, err := console.Open(console.Request{VM: machine(running), User: `a"b`, Secret: secret(), Now: now, Candidate: "c\nd"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.User.Patch()
	if want := `{"metadata":{"resourceVersion":"7","uid":"u1"},"status":{"consoleUser":"a\"b"}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	got, err = p.NewPassword.Patch()
	want := fmt.Sprintf(`{"data":{"display-password":"%s","password-expiry":"%s"},"metadata":{"resourceVersion":"3","uid":"s1"}}`,
		base64.StdEncoding.EncodeToString([]byte("c\nd")), base64.StdEncoding.EncodeToString([]byte("1800000010")))
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for _, text := range []string{fmt.Sprint(p.NewPassword), fmt.Sprintf("%+v", p.NewPassword)} {
		if strings.Contains(text, "c\nd") {
			t.Errorf("%q has the password", text)
		}
	}
}

func TestHost(t *testing.T) {
	both := []string{"10.0.0.7", "fd00::7"}
	for _, c := range []struct {
		server string
		ips    []string
		prefer console.Family
		want   string
	}{
		{"", both, "", "10.0.0.7"},
		{"", both, console.IPv4, "10.0.0.7"},
		{"", both, console.IPv6, "fd00::7"},
		{"", []string{"fd00::7"}, console.IPv4, "fd00::7"},
		{"", []string{"10.0.0.7"}, console.IPv6, "10.0.0.7"},
		{"", []string{"", "nonsense", "10.0.0.7"}, console.IPv6, "10.0.0.7"},
		{"", nil, console.IPv4, ""},
		{"desk.example.org", both, console.IPv6, "desk.example.org"},
	} {
		if got := console.Host(c.server, c.ips, c.prefer); got != c.want {
			t.Errorf("%q %v %s: %q, want %q", c.server, c.ips, c.prefer, got, c.want)
		}
	}
}
