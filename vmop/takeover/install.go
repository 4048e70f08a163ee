package takeover

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/operatorconfig"
	vmobjects "github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	formerOperator = "vm-operator"
	// formerImage is part of the name of VM-Operator's image, in any registry.
	formerImage    = "org.jdrupes.vmoperator.manager"
	labelPartOf    = "app.kubernetes.io/part-of"
	partOf         = "vmop"
	variablePrefix = "VMOP_"
)

func (c *check) installation() {
	for i := range c.in.Install {
		o := &c.in.Install[i]
		there := c.objects[key{o.GetKind(), o.GetNamespace(), o.GetName()}]
		if there == nil {
			continue
		}
		say := func(u Urgency, field, what, do string) {
			c.say(o.GetKind(), o.GetNamespace(), o.GetName(), u, TopicInstall, field, what, do)
		}
		own := there.GetLabels()[labelPartOf] == partOf
		if field := immutable(there, o); field != "" {
			say(Before, field, "what is to be installed has another value here, and Kubernetes changes this field of no object that exists: installing fails",
				"leave the object out of what is installed, or give it another name")
			continue
		}
		switch {
		case own, there.GetKind() == kindNamespace, there.GetKind() == kindDefinition:
			// Its own, or replaced on purpose.
		case overwrites(there, o):
			say(Before, "", "this exists and is not vmop's; installing overwrites what it says",
				"leave the object out of what is installed, or give it another name")
		}
	}
	for _, o := range c.objects.ofKind(kindDefinition) {
		if group, _, _ := unstructured.NestedString(o.Object, "spec", "group"); group != spec.GroupName {
			continue
		}
		stored, _, _ := unstructured.NestedStringSlice(o.Object, "status", "storedVersions")
		if slices.ContainsFunc(stored, func(v string) bool { return v != spec.Version }) {
			c.say(kindDefinition, "", o.GetName(), Before, TopicInstall, "status.storedVersions",
				fmt.Sprintf("objects are stored in the versions %s, and only %s is known", strings.Join(stored, ", "), spec.Version),
				"write all objects once with the present version, and remove the others from status.storedVersions")
		}
	}
}

// immutable returns a field that differs and that Kubernetes does not allow to change; "" if there
// is none.
func immutable(there, wanted *unstructured.Unstructured) string {
	fields := map[string][][]string{
		kindDeployment:       {{"spec", "selector"}},
		kindStatefulSet:      {{"spec", "selector"}, {"spec", "serviceName"}, {"spec", "volumeClaimTemplates"}},
		kindClaim:            {{"spec", "accessModes"}, {"spec", "storageClassName"}, {"spec", "volumeName"}, {"spec", "volumeMode"}},
		"RoleBinding":        {{"roleRef"}},
		"ClusterRoleBinding": {{"roleRef"}},
	}
	for _, path := range fields[there.GetKind()] {
		old, _, _ := unstructured.NestedFieldNoCopy(there.Object, path...)
		now, given, _ := unstructured.NestedFieldNoCopy(wanted.Object, path...)
		if given && !reflect.DeepEqual(old, now) {
			return strings.Join(path, ".")
		}
	}
	if there.GetKind() == kindClaim && shrinks(there, wanted) {
		return "spec.resources.requests.storage"
	}
	return ""
}

func shrinks(there, wanted *unstructured.Unstructured) bool {
	old, ok1 := as[corev1.PersistentVolumeClaim](there)
	now, ok2 := as[corev1.PersistentVolumeClaim](wanted)
	if !ok1 || !ok2 {
		return false
	}
	size := now.Spec.Resources.Requests.Storage()
	return !size.IsZero() && size.Cmp(*old.Spec.Resources.Requests.Storage()) < 0
}

// overwrites reports whether applying wanted changes more than metadata.
func overwrites(there, wanted *unstructured.Unstructured) bool {
	for field, now := range wanted.Object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			if !contains(there.Object[field], now) {
				return true
			}
		}
	}
	return false
}

// contains reports whether applying wanted to has would change nothing.
func contains(has, wanted any) bool {
	w, ok := wanted.(map[string]any)
	if !ok {
		return reflect.DeepEqual(has, wanted)
	}
	h, ok := has.(map[string]any)
	if !ok {
		return len(w) == 0
	}
	for k, v := range w {
		if !contains(h[k], v) {
			return false
		}
	}
	return true
}

// operators reports VM-Operators. Two operators that reconcile the same machines undo each other's
// writes.
func (c *check) operators() {
	for _, o := range c.objects.ofKind(kindDeployment) {
		d, ok := as[appsv1.Deployment](o)
		if !ok || !isFormerOperator(d) {
			continue
		}
		if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
			c.say(kindDeployment, d.Namespace, d.Name, Note, TopicOperator, "", "VM-Operator is stopped here, as it must be when vmop takes over",
				"delete it when you do not want to go back, with its Service and its roles")
			continue
		}
		c.say(kindDeployment, d.Namespace, d.Name, Before, TopicOperator, "spec.replicas",
			"VM-Operator looks after the machines of this namespace: it and vmop would undo each other's writes. Machines that run go on without it; its web interface ends with it",
			fmt.Sprintf("kubectl scale -n %s deployment %s --replicas=0, directly before vmop is installed", d.Namespace, d.Name))
	}
	for _, o := range c.objects.ofKind(kindStatefulSet) {
		if l := o.GetLabels(); l[names.LabelName] == names.AppName && l[names.LabelManagedBy] == names.ManagedBy {
			c.say(kindStatefulSet, o.GetNamespace(), o.GetName(), Differs, TopicOperator, "",
				"it is of a VM-Operator before 3.4: vmop deletes it if there is no machine of this name, and keeps its claims", "")
		}
	}
}

func isFormerOperator(d *appsv1.Deployment) bool {
	for _, container := range d.Spec.Template.Spec.Containers {
		if strings.Contains(container.Image, formerImage) {
			return true
		}
	}
	return d.Name == formerOperator && d.Labels[labelPartOf] != partOf
}

func (c *check) settings() {
	c.configs = map[string]operatorconfig.Config{}
	for _, o := range c.objects.ofKind(kindConfigMap) {
		if o.GetName() != formerOperator {
			continue
		}
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		text, ok := data[configKey]
		if !ok {
			continue
		}
		say := func(u Urgency, field, what, do string) {
			c.say(kindConfigMap, o.GetNamespace(), o.GetName(), u, TopicSettings, field, what, do)
		}
		read, remarks, err := operatorconfig.Parse(configKey, []byte(text))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				say(Before, "data."+configKey, line, "correct it: the operator does not start with it")
			}
			continue
		}
		for _, w := range remarks.Warnings {
			say(Note, "data."+configKey, w.String(), "")
		}
		for _, n := range remarks.Notes {
			say(Note, "data."+configKey, n.String(), "")
		}
		for _, name := range slices.Sorted(maps.Keys(data)) {
			if name != configKey {
				say(Note, "data."+name, "only VM-Operator reads it", "")
			}
		}
		say(Note, "", "vmop reads this configuration where it is, if it is installed in this namespace (deploy/takeover); elsewhere its options go into the operator's config.yaml", "")
		if c.configs[o.GetNamespace()], err = c.in.Operator.over(read); err != nil {
			c.configs[o.GetNamespace()] = read // [check.own] reports the error
		}
	}
}

func (c *check) own() {
	var err error
	if c.config, err = c.in.Operator.over(operatorconfig.Config{}); err != nil {
		c.say("", "", "", Before, TopicSettings, "", "the operator's own configuration: "+strings.Join(strings.Split(err.Error(), "\n"), "; "), "correct it")
	}
}

func (c *check) settingsOf(namespace string) vmobjects.Settings {
	if config, ok := c.configs[namespace]; ok {
		return config.Settings
	}
	return c.config.Settings
}

// Namespaced reports whether objects of a kind are in a namespace, for the kinds that a check uses.
func Namespaced(kind string) bool {
	switch kind {
	case kindNamespace, kindNode, kindVolume, kindCSIDriver, kindDefinition, "ClusterRole", "ClusterRoleBinding":
		return false
	}
	return true
}

// Configured returns the operator's configuration among objects to be installed.
func Configured(install []unstructured.Unstructured) Configuration {
	var out Configuration
	for i := range install {
		o := &install[i]
		if o.GetKind() != kindConfigMap || o.GetLabels()[labelPartOf] != partOf {
			continue
		}
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		for _, key := range slices.Sorted(maps.Keys(data)) {
			switch {
			case key == configKey:
				out.File = data[key]
			case strings.HasPrefix(key, variablePrefix):
				out.Environment = append(out.Environment, key+"="+data[key])
			}
		}
	}
	return out
}
