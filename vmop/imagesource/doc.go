// Package imagesource fetches disk images: from a file, a server of http or
// https, a registry of container images, an archive or a directory of them. [Fetch] makes a file of
// a [Source]: a raw or qcow2 image, or that of an optical disc, which has been checked and refers
// to no other file.
//
// The format is detected by content, not by name: gzip, xz and zstd are unpacked, vmdk and vdi
// converted (by qemu-img). Images that refer to other files or need keys are refused.
//
// Servers, archives and images are not trusted:
//   - the image gets its name only when it is complete, checked and on the storage. Until then
//     there are files beside it, whose names begin with its own, and from which the next Fetch of
//     the same source resumes where the server allows that;
//   - memory is bounded whatever they send, and the image by Options.MaxSize;
//   - no server redirects to another scheme, from https to http, or to an address that only this
//     host reaches, unless Options.Local allows it. The address of the connection decides, not the
//     name;
//   - messages contain no passwords and no queries of URLs.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package imagesource
