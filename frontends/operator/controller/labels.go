package controller

import (
	"github.com/vmop/sdk/vmop/names"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

func objectLabels() labels.Set {
	return labels.Set{names.LabelName: names.AppName, names.LabelManagedBy: names.ManagedBy}
}

// podLabels are those of the pods that are watched: one label only, so that a
// selector can say which pods are not, see [starts].
func podLabels() labels.Set {
	return labels.Set{names.LabelComponent: names.ComponentRunner}
}

func secretLabels() labels.Set {
	return labels.Set{names.LabelName: names.AppName, names.LabelComponent: names.ComponentDisplaySecret}
}

// watchedSecrets selects the display secrets, and the certificates, the user data and the
// keys of exporters, of images and of uploads that the operator has put into Secrets.
func watchedSecrets() labels.Selector {
	out := labels.SelectorFromSet(labels.Set{names.LabelName: names.AppName})
	// The values are labels, or else nothing could be selected by them.
	r, err := labels.NewRequirement(names.LabelComponent, selection.In, []string{
		names.ComponentDisplaySecret, names.ComponentDisplayCertificate, names.ComponentUserData,
		names.ComponentAttachment, names.ComponentImageKey, names.ComponentTransfer,
	})
	if err == nil {
		out = out.Add(*r)
	}
	return out
}
