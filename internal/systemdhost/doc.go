// Package systemdhost shows, with a systemd that runs, that machines start and stop
// with their host. The host is this one's file system, beneath a layer that keeps what
// is written, in namespaces of its own: it boots in a second, and is gone with the
// process that started it.
package systemdhost
