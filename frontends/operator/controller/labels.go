package controller

import (
	"github.com/vmop/sdk/vmop/names"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

func objectLabels() labels.Set {
	return labels.Set{names.LabelName: names.AppName, names.LabelManagedBy: names.ManagedBy}
}

// podLabels are the labels of watched pods: a single one, so that a selector can express which pods
// are not watched, see [starts].
func podLabels() labels.Set {
	return labels.Set{names.LabelComponent: names.ComponentRunner}
}

func secretLabels() labels.Set {
	return labels.Set{names.LabelName: names.AppName, names.LabelComponent: names.ComponentDisplaySecret}
}

func watchedSecrets() labels.Selector {
	out := labels.SelectorFromSet(labels.Set{names.LabelName: names.AppName})
	// The values are valid as labels, since they are selected by.
	r, err := labels.NewRequirement(names.LabelComponent, selection.In, []string{
		names.ComponentDisplaySecret, names.ComponentDisplayCertificate, names.ComponentUserData,
		names.ComponentAttachment, names.ComponentImageKey, names.ComponentTransfer,
	})
	if err == nil {
		out = out.Add(*r)
	}
	return out
}
