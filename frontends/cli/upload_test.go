package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/transfer"
)

// diskStates is an API server with one disk, which goes through these states and stays in
// the last.
func diskStates(t *testing.T, states []spec.VirtualDiskStatus) (*cluster.Client, *spec.VirtualDisk) {
	t.Helper()
	at := func(i int) *spec.VirtualDisk {
		d := spec.NewDisk("lab", "up", resource.MustParse("1Gi"))
		d.UID, d.ResourceVersion, d.Status = "u1", fmt.Sprint(i+1), states[i]
		return d
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		q := r.URL.Query()
		switch {
		case q.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = out.Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
		case q.Get("watch") != "":
			for i := range states[1:] {
				_ = out.Encode(map[string]any{"type": watch.Modified, "object": at(i + 1)})
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_ = out.Encode(map[string]any{
				"apiVersion": spec.GroupVersion().String(), "kind": spec.KindDisk + "List",
				"metadata": metav1.ListMeta{ResourceVersion: "1"}, "items": []any{at(0)},
			})
		}
	}))
	t.Cleanup(server.Close)
	client, err := cluster.New(&rest.Config{Host: server.URL}, "lab", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.CloseClientConnections)
	return client, at(0)
}

// What becomes of an upload is what the disk says and the pod's last words, also where the
// connection was cut off before the pod had answered. Nobody waits for ever.
func TestWhatBecomesOfAnUpload(t *testing.T) {
	const forEver, atOnce = time.Hour, time.Nanosecond
	unanswered := fmt.Errorf("%w: EOF", transfer.ErrUnanswered)
	making := func(step string) spec.VirtualDiskStatus {
		return spec.VirtualDiskStatus{Phase: spec.DiskProvisioning, Import: &spec.VirtualDiskImport{Step: step, PodUID: "earlier", Message: "of an earlier pod"}}
	}
	coming, converts := making(runnerconfig.StepUploading), making("converting")
	ready := spec.VirtualDiskStatus{Phase: spec.DiskReady}
	ended := spec.VirtualDiskStatus{Phase: spec.DiskWaitForUserUpload, Import: &spec.VirtualDiskImport{PodUID: "pod", Message: "it is no image"}}
	for name, c := range map[string]struct {
		failed error
		wait   time.Duration
		states []spec.VirtualDiskStatus
		want   string
	}{
		"it was taken":                          {nil, 0, []spec.VirtualDiskStatus{coming, converts, ready}, ""},
		"it was refused":                        {nil, 0, []spec.VirtualDiskStatus{coming, ended}, "it is no image"},
		"the last answer is lost":               {unanswered, forEver, []spec.VirtualDiskStatus{ready}, ""},
		"it is lost, and the disk is made":      {unanswered, forEver, []spec.VirtualDiskStatus{coming, converts, ready}, ""},
		"it is lost, and the file was refused":  {unanswered, forEver, []spec.VirtualDiskStatus{coming, ended}, "it is no image"},
		"it is lost, and nothing becomes of it": {unanswered, atOnce, []spec.VirtualDiskStatus{coming}, "the answer is lost: EOF"},
		"it was cut off":                        {errors.New("cut off"), atOnce, []spec.VirtualDiskStatus{coming}, "cut off"},
		"it was cut off by the pod's end":       {errors.New("cut off"), forEver, []spec.VirtualDiskStatus{coming, ended}, "it is no image"},
		"it was cut off, and another one came":  {errors.New("cut off"), forEver, []spec.VirtualDiskStatus{coming, ready}, "cut off; somebody else has uploaded it"},
	} {
		t.Run(name, func(t *testing.T) {
			client, disk := diskStates(t, c.states)
			u := &upload{diskWork: &diskWork{client: client}, out: &diskDone{}, object: disk}
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("nobody decides"))
			defer cancel()
			err := u.verdict(ctx, "pod", c.failed, c.wait, func(string) {})
			if got := fmt.Sprint(err); (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(got, c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
