// Package imagesource gets disk images from where people have them: a file, a server
// of http or https, a registry of container images, an archive or a directory of
// them. [Fetch] makes a file of a [Source]: a raw or qcow2 image, or that of an optical
// disc, which depends on nothing and has been looked at.
//
// What an image is decides what is in it, and not its name: gzip, xz and zstd are
// unpacked, vmdk and vdi converted (by qemu-img). What refers to other files or needs
// keys is refused.
//
// Servers, archives and images are strangers':
//   - the image has its name only once it is complete, checked and on the storage.
//     Until then there are files beside it, whose names begin with its own, and with
//     which the next Fetch of the same source goes on where the server allows that;
//   - memory is bounded whatever they send, and the image by Options.MaxSize;
//   - no server leads to another scheme, from https to http, or to an address that
//     only this host reaches, unless Options.Local allows it. The address that is
//     connected to decides, not the name;
//   - messages have no passwords and no queries of URLs.
package imagesource
