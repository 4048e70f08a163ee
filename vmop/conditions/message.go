package conditions

import "fmt"

// MaxMessage is the length of a message in a status, in bytes. It is what the
// definitions of the resources allow, as Kubernetes does for its own conditions.
const MaxMessage = 32 << 10

// Bounded returns message, or of one that is too long its beginning and how many bytes are missing.
func Bounded(message string) string {
	const room = 64 // for the count of missing bytes
	if len(message) <= MaxMessage {
		return message
	}
	n := MaxMessage - room
	for n > 0 && message[n]&0xc0 == 0x80 { // within a character
		n--
	}
	return message[:n] + fmt.Sprintf("… (%d bytes more)", len(message)-n)
}
