// Package rfb is a VNC client that does as much of the protocol (RFC 6143) as
// tests of a server need: it connects, authenticates, and learns the size of the
// screen.
package rfb
