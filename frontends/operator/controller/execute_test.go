package controller

import (
	"context"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// asked is an API server that counts the writes to objects that exist.
type asked struct {
	client.Client
	writes int
}

func (a *asked) SubResource(string) client.SubResourceClient { return subresourceAsked{a: a} }

func (a *asked) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	a.writes++
	return nil
}

func (a *asked) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	a.writes++
	return nil
}

type subresourceAsked struct {
	client.SubResourceClient
	a *asked
}

func (s subresourceAsked) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	s.a.writes++
	return nil
}

// What does not say which object it was decided about meets whatever has the name by now:
// nothing of the kind is sent.
func TestNoWriteIsSentWithoutItsObject(t *testing.T) {
	const uid, version = "metadata.uid", "metadata.resourceVersion"
	for _, test := range []struct {
		open  reconcile.Action
		lacks string
		exact reconcile.Action
	}{
		{reconcile.UpdateClaim{UID: "u"}, version, reconcile.UpdateClaim{UID: "u", ResourceVersion: "1"}},
		{reconcile.UpdateClaim{ResourceVersion: "1"}, uid, nil},
		{reconcile.AnnotatePod{}, uid, reconcile.AnnotatePod{UID: "u"}},
		{reconcile.AdoptPod{UID: "u"}, version, reconcile.AdoptPod{UID: "u", ResourceVersion: "1"}},
		{reconcile.AnnotateConfigMap{ResourceVersion: "1"}, uid, reconcile.AnnotateConfigMap{UID: "u", ResourceVersion: "1"}},
		{reconcile.ResizePod{UID: "u"}, version, reconcile.ResizePod{UID: "u", ResourceVersion: "1"}},
		{reconcile.SetFinalizers{UID: "u"}, version, reconcile.SetFinalizers{UID: "u", ResourceVersion: "1"}},
		{reconcile.SetFinalizers{ResourceVersion: "1"}, uid, nil},
		{reconcile.Patch{UID: "u"}, version, reconcile.Patch{ResourceVersion: "1"}},
		{reconcile.Patch{UID: "u", Subresource: "status"}, version, reconcile.Patch{UID: "u", ResourceVersion: "1", Subresource: "status"}},
		{reconcile.DeletePod{}, uid, reconcile.DeletePod{UID: "u"}},
		{reconcile.DeleteService{}, uid, reconcile.DeleteService{UID: "u"}},
		{reconcile.DeleteClaim{}, uid + " and " + version, reconcile.DeleteClaim{UID: "u", ResourceVersion: "1"}},
		{reconcile.DeleteSecret{UID: "u"}, version, reconcile.DeleteSecret{UID: "u", ResourceVersion: "1"}},
		{reconcile.DeleteConfigMap{UID: "u"}, version, reconcile.DeleteConfigMap{UID: "u", ResourceVersion: "1"}},
		{reconcile.DeleteOperation{ResourceVersion: "1"}, uid, reconcile.DeleteOperation{UID: "u", ResourceVersion: "1"}},
		{reconcile.DeleteAttachment{UID: "u"}, version, reconcile.DeleteAttachment{UID: "u", ResourceVersion: "1"}},
	} {
		api := &asked{}
		e := &executor{client: api}
		_, err := e.send(t.Context(), "lab", test.open)
		if err == nil || !strings.Contains(err.Error(), test.lacks+" must be") || api.writes != 0 {
			t.Errorf("%T without %s: %v, %d writes", test.open, test.lacks, err, api.writes)
		}
		if test.exact == nil {
			continue
		}
		if _, err := e.send(t.Context(), "lab", test.exact); err != nil || api.writes != 1 {
			t.Errorf("%+v: %v, %d writes", test.exact, err, api.writes)
		}
	}
	if deletionOf("lab", reconcile.SetFinalizers{Kind: names.KindVirtualMachine}) != nil || !mayBeGone(reconcile.DeleteService{}) || mayBeGone(reconcile.Patch{}) {
		t.Error("what deletes, or may find nothing, is mistaken")
	}
}
