// Package rfb is a VNC client that does as much of the protocol (RFC 6143) as
// tests of a server need: it connects, authenticates, learns the size of the screen
// and gets a picture of it.
package rfb
