// Package spice is a SPICE client that does as much of the protocol as tests of a
// server need: it connects, authenticates, opens the channels that the server
// offers, and keeps them alive as a viewer does.
package spice
