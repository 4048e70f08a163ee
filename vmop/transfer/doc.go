// Package transfer carries the content of one disk between a user's program and the
// pod that has the disk's volume: [Receiver] takes an upload, [Server] gives a download,
// and [Client] is the other end of both.
//
// It is HTTP within TLS. Both ends have the same key, from one Secret of the disk: only those who
// may read the Secret can be either end, so no token is ever sent. A pod listens on its loopback
// interface only, to which the API server's port forwarding connects.
//
// An upload consists of HTTP resources that curl can write to, too:
//
//	GET /upload   what there is: {"received": N, "total": T, "sha256": HEX of those}
//	PUT /upload   the whole, or with Content-Range: bytes A-B/T the part behind what
//	              there is (RFC 9110, 14.5); Repr-Digest (RFC 9530) is compared
//
// So does a download:
//
//	GET /disk     what there is: {"format": F, "size": T, "part": N}
//	GET /disk/I   the part from byte I*N on, by zstd if it is accepted; its ETag is its
//	              SHA-256, so that If-None-Match spares what the client has already
//	POST /done    the download is whole, and no other one follows
//
// A partial upload is kept for as long as the receiver waits, and can be resumed. A file gets its
// name only if it has the announced length and digest. A download needs no such memory: each part
// that the file already has is compared with the pod's.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package transfer
