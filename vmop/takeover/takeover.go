package takeover

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/operatorconfig"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Input is the input of a check.
type Input struct {
	// Objects are the objects of the cluster: machines and pools; the pods, ConfigMaps, volume
	// claims, Deployments and StatefulSets of their namespaces; the namespaces, volumes, nodes, CSI
	// drivers and CRDs. Others are ignored, unless an object of their name is to be installed.
	Objects []unstructured.Unstructured
	// Install are the objects that are going to be installed, with their namespaces. If empty,
	// there are no findings about them.
	Install []unstructured.Unstructured
	// Operator is the operator's configuration, which overrides VM-Operator's.
	Operator Configuration
	// Unseen maps kinds that could not be read to the reason. Findings that depend on them are
	// missing.
	Unseen map[string]string
}

const (
	kindPod         = "Pod"
	kindConfigMap   = "ConfigMap"
	kindClaim       = "PersistentVolumeClaim"
	kindVolume      = "PersistentVolume"
	kindNamespace   = "Namespace"
	kindNode        = "Node"
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindCSIDriver   = "CSIDriver"
	kindDefinition  = "CustomResourceDefinition"
)

// Configuration is the configuration of an operator.
type Configuration struct {
	// File is the text of its configuration file; see [operatorconfig.ParseOver].
	File string
	// Environment are its environment variables, in the form of os.Environ; see
	// [operatorconfig.ParseEnvironment].
	Environment []string
}

// over returns the configuration, with VM-Operator's as its base.
func (c *Configuration) over(base operatorconfig.Config) (operatorconfig.Config, error) {
	config, _, err := operatorconfig.ParseOver(base, configKey, []byte(c.File))
	if err == nil {
		config, _, err = operatorconfig.ParseEnvironment(config, c.Environment)
	}
	return config, err
}

// Urgency is the urgency of a finding.
type Urgency string

const (
	// Before means that something must be done before the takeover: otherwise something does not
	// start, or objects of other programs are lost.
	Before Urgency = "before"
	// Differs means that something will be different.
	Differs Urgency = "differs"
	// Note means that something stays the same, or is not about the machine.
	Note Urgency = "note"
)

var urgencies = []Urgency{Before, Differs, Note}

type Topic string

// The topics, which are those of docs/from-vm-operator.md.
const (
	TopicInstall   Topic = "install"
	TopicOperator  Topic = "operator"
	TopicNamespace Topic = "namespace"
	TopicSettings  Topic = "settings"
	TopicManifest  Topic = "manifest"
	TopicImage     Topic = "image"
	TopicTemplate  Topic = "template"
	TopicNetwork   Topic = "network"
	TopicDisks     Topic = "disks"
	TopicBoot      Topic = "boot"
	TopicKVM       Topic = "kvm"
	TopicDisplay   Topic = "display"
	TopicRestart   Topic = "restart"
	TopicUsers     Topic = "users"
)

// Finding is a finding about the takeover.
type Finding struct {
	// Kind, Namespace and Name are those of the object. All are empty for a finding about the
	// cluster.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Field is the JSON path of the field; empty for the whole object.
	Field string `json:"field,omitempty"`

	Urgency Urgency `json:"urgency"`
	Topic   Topic   `json:"topic"`
	// What describes the finding and its consequence.
	What string `json:"what"`
	// Do is what to do about it; empty if nothing needs to be done.
	Do string `json:"do,omitempty"`
}

// Object names the object of a finding; "cluster" if it has none.
func (f *Finding) Object() string {
	switch {
	case f.Kind == "":
		return "cluster"
	case f.Namespace == "":
		return f.Kind + " " + f.Name
	}
	return f.Kind + " " + f.Namespace + "/" + f.Name
}

// Pending reports whether something must be done before the takeover.
func Pending(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Urgency == Before })
}

// compare orders the cluster before namespaces, those before their machines and pools, and the most
// urgent first.
func compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(rank(&a), rank(&b)),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
		cmp.Compare(slices.Index(urgencies, a.Urgency), slices.Index(urgencies, b.Urgency)),
		strings.Compare(string(a.Topic), string(b.Topic)), strings.Compare(a.Field, b.Field),
		strings.Compare(a.What, b.What), strings.Compare(a.Do, b.Do),
	)
}

func rank(f *Finding) int {
	switch f.Kind {
	case "":
		return 0
	case spec.KindVirtualMachine:
		return 2
	case spec.KindVMPool:
		return 3
	}
	return 1
}

type check struct {
	in      *Input
	objects objects
	found   []Finding
	// configs are the effective configurations of namespaces where VM-Operator has one, config that
	// of all others.
	configs map[string]operatorconfig.Config
	config  operatorconfig.Config
}

func (c *check) say(kind, namespace, name string, u Urgency, t Topic, field, what, do string) {
	c.found = append(c.found, Finding{Kind: kind, Namespace: namespace, Name: name, Field: field, Urgency: u, Topic: t, What: what, Do: do})
}

const configKey = "config.yaml"
