// Package disk decides about disks that exist by themselves ([spec.VirtualDisk]) and
// images that they are made of ([spec.VirtualImage]): [Decide] turns what was observed of
// one into the writes, the status and the events that it calls for.
//
// A disk is a volume claim that is made for it, named after it ([objects.ClaimOfDisk]),
// and owned by it. An empty block device needs no more than that. Anything else is put
// into the claim by a pod ([objects.ImportJob]), once: when it has said that the disk is
// there, the claim is marked (names.AnnotationFilled), and no such pod is made again.
//
// An image is such a claim, too: what fills it is the same, and has the same promises.
// Its claim stays as it was made when it is filled, no machine has it, and copying it
// takes nobody's turn.
//
// # What is promised
//
// Nothing is put into a claim that was not made for this very disk, that has been
// filled, that the status does not name by its UID yet, or that another pod uses; nor by
// two pods, which have one name. No plan shrinks a claim, or deletes one, but for one that
// was to be a clone and never had a volume. A disk that a machine has in its manifest is
// not let go. A claim that is gone is not made anew, with the same exception: an empty
// disk in its place would look like lost data. The pod itself writes to no file that it
// has not made, whatever it is told.
//
// A claim may be a clone of that of its source. Nobody is believed that it is: the pod
// compares the two, and copies what is none.
//
// Who asks to download a disk or an image is answered once: by a pod that only reads, or
// by why there is none. Nobody reads a disk beside somebody who has it. The pod gets its
// key, without which it does not start, only after the status names it by its UID and
// nobody else was seen to have the disk; the key goes with it.
//
// What a pod says at its end nobody else vouches for: it decides when the disk is
// shown as ready, what is written about a failure, and nothing else.
//
// # Stability
//
// It changes with the operator that decides by it, also in what other programs use.
package disk
