package spec

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmop/sdk/vmop/limits"
)

// Spice configures the SPICE server of the machine.
type Spice struct {
	// +kubebuilder:default=5900
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional

	// port is the port of the SPICE server.
	Port *int32 `json:"port,omitempty"`

	// +kubebuilder:validation:MaxLength=1024
	// +optional

	// server is the host name or address that viewers connect to, if it is
	// not the pod's.
	Server string `json:"server,omitempty"`

	// +kubebuilder:default=true
	// +optional

	// generateSecret makes the operator create a secret with a display
	// password if there is none.
	GenerateSecret *bool `json:"generateSecret,omitempty"`

	// +kubebuilder:validation:MaxLength=4096
	// +optional

	// proxyUrl is the URL of a proxy that viewers go through.
	ProxyURL string `json:"proxyUrl,omitempty"`

	// +kubebuilder:validation:MaxLength=64
	// +optional

	// streamingVideo says when the server streams parts of the screen as
	// video: off, filter or all.
	StreamingVideo string `json:"streamingVideo,omitempty"`

	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=14
	// +optional

	// usbRedirects is the number of USB devices that a viewer can hand over.
	UsbRedirects *int32 `json:"usbRedirects,omitempty"`
}

func (*Spice) protocol() string            { return "spice" }
func (s *Spice) port(int) **int32          { return &s.Port }
func (*Spice) onSocket() bool              { return false }
func (s *Spice) makesPassword() **bool     { return &s.GenerateSecret }
func (*Spice) defaulted() []string         { return []string{"port", "generateSecret", "usbRedirects"} }
func (s *Spice) setDefaults()              { setPointer(&s.UsbRedirects, 2) }
func (*Spice) admitsWithoutPassword() bool { return true }

func (s *Spice) validate(at spot) field.ErrorList {
	errs := limited(at.Child("usbRedirects"), *s.UsbRedirects, limits.USBRedirects(int64(*s.UsbRedirects)))
	if strings.ContainsFunc(s.Server, isBlankOrControl) {
		errs = append(errs, invalidAt(at.Child("server"), s.Server, "must be a host name or an address"))
	}
	if s.ProxyURL != "" {
		u, err := url.Parse(s.ProxyURL)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsFunc(s.ProxyURL, isBlankOrControl) {
			errs = append(errs, invalidAt(at.Child("proxyUrl"), shownURL(s.ProxyURL), "must be a URL such as http://proxy.example.org:3128"))
		}
	}
	if s.StreamingVideo != "" {
		errs = append(errs, oneOf(at.Child("streamingVideo"), s.StreamingVideo, "off", "filter", "all")...)
	}
	return errs
}
