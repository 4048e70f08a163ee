// Package transfer carries the content of one disk between a person's program and the
// pod that has the disk's volume: [Receiver] takes an upload, [Server] gives a download,
// and [Client] is the other end of both.
//
// It is HTTP within TLS. Both ends have the same key, that of one Secret of the disk:
// who may read that may be either end, and nobody else, so that no token is ever sent.
// A pod listens on its loopback interface alone, where the API server's port forwarding
// leads to.
//
// An upload is resources of HTTP that curl can write to, too:
//
//	GET /upload   what there is: {"received": N, "total": T, "sha256": HEX of those}
//	PUT /upload   the whole, or with Content-Range: bytes A-B/T the part behind what
//	              there is (RFC 9110, 14.5); Repr-Digest (RFC 9530) is compared
//
// A download is resources, too:
//
//	GET /disk     what there is: {"format": F, "size": T, "part": N}
//	GET /disk/I   the part from byte I*N on, by zstd if it is accepted; its ETag is its
//	              SHA-256, so that If-None-Match spares what somebody has already
//	POST /done    the download is whole, and no other one follows
//
// What was sent in part stays for as long as the receiver waits, and goes on behind
// what there is. Only what is as long as was said becomes a file with a name, and only
// if its digest is the one that was said. A download needs no such memory: each part of
// what a file has is compared with what the pod has.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package transfer
