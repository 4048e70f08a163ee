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
//	Making     the images. The overlays are being made, and nobody uses them.
//	Attaching  both. The overlays are whole. QEMU may use them from any moment on;
//	           until then they are empty, which is the same as if they were not there.
//	Attached   both. The images stand still, and the journal knows their sizes and times.
//	Merging    both. The images are written, so that their times say nothing more.
//	Merged     the images. What an overlay has its image has, too, on the storage.
//
// Merging again what is merged already changes nothing, because an image is written
// by nobody but the merging while an overlay counts. So all that must never
// happen is that a guest writes to an image in a phase of both, or to an overlay in
// one of the images alone. Therefore the jobs that merge do not finish by themselves:
// one that is told to complete comes to a state in which QEMU has found that nothing is
// left to copy, has flushed the image and holds back whatever the guest would write
// (the job is pending, and its node is drained: mirror_run in QEMU's block/mirror.c).
// Merged is written then, and the jobs are finalized after that, which has the
// guest write to its images again. The progress that a job that is ready tells proves
// nothing: it is as old as the job's last look, up to 100 ms.
//
// The guest is paused from before the jobs complete until they are finalized. That is
// for QEMU, of which 7.2 was seen to abort when a request had waited for a job that
// was finalized.
package overlay
