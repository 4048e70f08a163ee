package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

// readable replaces the descriptor sets in an error of QEMU's by the paths of the images.
func (e *Engine) readable(err error) error {
	var refused *qmp.Error
	if !errors.As(err, &refused) {
		return err
	}
	readable := *refused
	readable.Desc = e.namedImages(refused.Desc)
	return &readable
}

// mediaSets is the base of the descriptor set numbers of media; no other sets reach it.
const mediaSets = 10000

// release closes the medium that a drive had before: QEMU keeps named block nodes and descriptor
// sets.
func (f *follower) release(ctx context.Context, id string, set int) error {
	err := do(ctx, f.client, qmp.BlockdevDel{NodeName: qemucmd.MediumNode(id)})
	if err != nil && !refusal(err) {
		return err
	}
	former := f.inDrive[id]
	f.inDrive[id] = set
	f.forget(ctx, former)
	return nil
}

// forget has QEMU close a descriptor set. While the guest is paused QEMU (7.2:
// monitor_fdset_cleanup) only marks the set for removal: the command is repeated until QEMU no
// longer knows the set.
func (f *follower) forget(ctx context.Context, set int) {
	if _, there := f.e.opened.LoadAndDelete(qemucmd.FDSetName(set)); there {
		f.closing = append(f.closing, set)
	}
	f.closing = slices.DeleteFunc(f.closing, func(set int) bool {
		return refusal(do(ctx, f.client, qmp.RemoveFD{FDSetID: set}))
	})
}
