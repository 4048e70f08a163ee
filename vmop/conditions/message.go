package conditions

import (
	"fmt"
	"strings"
)

// MaxMessage is the length of a message in a status, in bytes. It is what the
// definitions of the resources allow, as Kubernetes does for its own conditions.
const MaxMessage = 32 << 10

// Line is how long the message of a condition should be, in bytes, where names have a usual length:
// kubectl has one line for it.
const Line = 200

// List joins as many texts as a [Line] has room for beside so many other bytes, the first one
// whatever its length, and says how many more there are: those are left.
func List(texts []string, separator string, beside int) (list string, left []string) {
	if len(texts) == 0 {
		return "", nil
	}
	more := separator + "and %d more"
	list, left = texts[0], texts[1:]
	for room := Line - beside - len(more); len(left) > 0; left = left[1:] {
		if len(list)+len(separator)+len(left[0]) > room {
			return list + fmt.Sprintf(more, len(left)), left
		}
		list += separator + left[0]
	}
	return list, nil
}

// Fit returns as much of a text as a [Line] has room for beside so many other bytes, and
// whether that is all of it. It is cut between words.
func Fit(text string, beside int) (line string, whole bool) {
	const cut = "…"
	if len(text)+beside <= Line {
		return text, true
	}
	n := max(Line-beside-len(cut), 0)
	for n > 0 && text[n]&0xc0 == 0x80 { // within a character
		n--
	}
	if space := strings.LastIndexByte(text[:n], ' '); space > n/2 {
		n = space + 1
	}
	return text[:n] + cut, false
}

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
