package qemucmd

import (
	"crypto/sha256"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// StableMAC derives an Ethernet address from a machine's UUID and the position of the network in
// its list. The result for the same arguments never changes.
//
// The address is the beginning of a SHA-256 hash, marked as locally administered and unicast (IEEE
// 802). 46 bits of the hash remain; QEMU's customary prefix 52:54:00 would leave 24, and an even
// chance of a collision among some 4800 interfaces.
func StableMAC(seed string, index int) string {
	sum := sha256.Sum256([]byte("vmop MAC\x00" + seed + "\x00" + strconv.Itoa(index)))
	mac := net.HardwareAddr(sum[:6])
	mac[0] = mac[0]&^0x01 | 0x02
	return mac.String()
}

// stableGeneration derives the generation ID of a guest that was never copied from the UUID of its
// machine. It is marked as of an own rule (RFC 9562, version 8).
func stableGeneration(uuid string) string {
	sum := sha256.Sum256([]byte("vmop generation\x00" + strings.ToLower(uuid)))
	g := sum[:16]
	g[6] = g[6]&0x0f | 0x80
	g[8] = g[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", g[0:4], g[4:6], g[6:8], g[8:10], g[10:])
}
