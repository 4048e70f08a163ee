// Package overlay keeps the disks of a machine that runs still for as long as they are
// copied: the guest writes to qcow2 overlays meanwhile, which QEMU merges back into the
// images afterwards. The package decides what is to be done next, whatever was
// interrupted where, keeps the journal that says so, and merges what is left when
// there is no QEMU any more. What QEMU is asked is package host's.
//
// There is one question that must have one answer at every moment: does the image have
// all that the guest has written, or the image and its overlay together? The answer is
// the journal's [Phase], which is on the storage before it becomes true:
//
//	Making     the images. The overlays are being created, and are not in use.
//	Attaching  both. The overlays are complete. QEMU may use them at any time; until
//	           then they are empty, which is the same as if they did not exist.
//	Attached   both. The images do not change, and the journal has their sizes and times.
//	Merging    both. The images are written, so that their times are meaningless.
//	Merged     the images. They have all content of the overlays, on the storage.
//
// Merging again changes nothing, because only the merge writes to an image while an overlay
// counts. What must never happen is that a guest writes to an image in a phase of both, or to
// an overlay in a phase of the images alone. Therefore the merging jobs do not finish by
// themselves: a job that was asked to complete reaches a state in which QEMU has found that
// nothing is left to copy, has flushed the image and holds back the guest's writes (the job is
// pending, and its node is drained: mirror_run in QEMU's block/mirror.c). Then Merged is
// written, and then the jobs are finalized, after which the guest writes to its images again.
// The progress that a ready job reports proves nothing: it may be 100 ms old.
//
// The guest is paused from before the jobs complete until they are finalized, because QEMU 7.2
// was seen to abort when a request had waited for a job that was finalized.
package overlay
