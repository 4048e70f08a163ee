package main

import (
	"github.com/vmop/sdk/vmop/output"
)

type displayConnection struct {
	Protocol string
	URI      string
	// Socket is the path of a UNIX socket; Host and Port are for TCP.
	Socket string
	Host   string
	Port   int
	// Auth is "none", or "spice" or "vnc" for a password.
	Auth string
}

// reachable returns an address under which this host reaches a listener on host.
func reachable(host string) string {
	switch host {
	case "", "*", "0.0.0.0": // every address of this host
		return "127.0.0.1"
	case "::":
		return "::1"
	}
	return host
}

func printedConnection(d displayConnection) *output.DisplayConnection {
	return &output.DisplayConnection{Protocol: d.Protocol, URI: d.URI, Path: d.Socket, Host: d.Host, Port: d.Port, Auth: d.Auth}
}
