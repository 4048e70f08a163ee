// Package qga speaks with the QEMU guest agent, the program that runs inside a guest and tells the
// host what only the guest knows: its operating system, its host name, its addresses. It also
// freezes file systems for a backup, runs programs and shuts the guest down. The protocol is QEMU's
// (docs/interop/qemu-ga-ref).
//
// Most users dial the host's end of the agent's virtio-serial port and call the typed commands:
//
//	client, err := qga.Dial(ctx, socket)
//	defer client.Close()
//	info, err := client.OSInfo(ctx)
//
// # Contract
//
//  1. The client synchronizes before its first command, and again after every call that did not end
//     with its own reply. Half a command or unread replies that an earlier client left on the
//     socket are skipped.
//  2. Every call ends when its context does, and a context without a deadline gets one of
//     [DefaultTimeout]. Such a call fails with [ErrNoAnswer]; the client stays usable, and the
//     agent may have run the command nevertheless.
//  3. Calls may be made from several goroutines; the protocol has no numbers, so they run one after
//     the other.
//  4. The client has no goroutine. [Client.Close] may be called at any time, more than once, and
//     ends the call in progress.
//  5. A guest is not trusted: a reply longer than [MaxReply], or [MaxAnswer], is refused, and what
//     is not a reply is an error that matches [ErrProtocol].
//
// # A guest without an agent
//
// An absent agent looks like a silent one. As long as no program in the guest has opened the port,
// QEMU does not read from the socket either, and requests queue there until an agent starts. To
// find out, query QEMU: the chardev's frontend-open in QMP's query-chardev is true while the guest
// has the port open, and the event VSERPORT_CHANGE reports changes. Unless answered, the client
// sends only a few synchronization requests and then only waits, so that the queue stays small.
//
// QEMU serves one client of such a socket at a time. The next one waits, without an error, until
// the first one has closed its connection.
//
// # Compatibility
//
// Commands that an agent lacks, or that its configuration disables, fail with an *[Error]. Use
// errors.Is with [ErrCommandNotFound] for the former; [Client.Info] lists the commands.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package qga
