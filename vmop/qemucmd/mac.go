package qemucmd

import (
	"crypto/sha256"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// StableMAC derives an Ethernet address from the identity of a machine, its
// UUID, and the position of the network in its list. The same arguments give
// the same address for ever.
//
// The address is the beginning of a SHA-256 hash, with the two bits of the
// first byte set that IEEE 802 defines: locally administered, so that it
// belongs to no vendor, and unicast. 46 bits of the hash remain, where QEMU's
// customary prefix 52:54:00 would leave 24, and with them an even chance of a
// collision among some 4800 interfaces.
func StableMAC(seed string, index int) string {
	sum := sha256.Sum256([]byte("vmop MAC\x00" + seed + "\x00" + strconv.Itoa(index)))
	mac := net.HardwareAddr(sum[:6])
	mac[0] = mac[0]&^0x01 | 0x02
	return mac.String()
}

// stableGeneration derives the generation of a guest that was never copied from
// the UUID of its machine. It is marked as made by a rule of one's own (RFC 9562,
// version 8).
func stableGeneration(uuid string) string {
	sum := sha256.Sum256([]byte("vmop generation\x00" + strings.ToLower(uuid)))
	g := sum[:16]
	g[6] = g[6]&0x0f | 0x80
	g[8] = g[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", g[0:4], g[4:6], g[6:8], g[8:10], g[10:])
}
