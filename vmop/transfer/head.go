package transfer

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"strconv"
	"strings"
)

// digestHeader is the digest of the whole content (RFC 9530, 3), whatever part of it is sent.
const digestHeader = "Repr-Digest"

// part is the part of the content that is sent: length bytes from a position on, of total. If it is
// the whole content, of unknown length, length is -1 and total 0.
type part struct{ from, length, total int64 }

// parsePart parses Content-Range: bytes FIRST-LAST/TOTAL of a request (RFC 9110, 14.4 and 14.5)
// whose body has body bytes, -1 if unknown. Without the header it is the whole content.
func parsePart(text string, body int64) (part, error) {
	if text == "" {
		return part{0, max(body, -1), max(body, 0)}, nil
	}
	wrong := fmt.Errorf("Content-Range %.100q: want bytes FIRST-LAST/TOTAL", text)
	span, size, isRange := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	low, high, isSpan := strings.Cut(span, "-")
	first, ok1 := number(low)
	last, ok2 := number(high)
	total, ok3 := number(size)
	if !isRange || !isSpan || !strings.HasPrefix(text, "bytes ") || !ok1 || !ok2 || !ok3 || first > last || last >= total {
		return part{}, wrong
	}
	p := part{first, last - first + 1, total}
	if body >= 0 && body != p.length {
		return part{}, fmt.Errorf("Content-Range %.100q: the body has %d bytes", text, body)
	}
	return p, nil
}

func number(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strings.Trim(text, "0123456789") == ""
}

// parseDigest finds sha-256=:BASE64: in a list of digests and ignores others; nil if there is none.
func parseDigest(text string) ([]byte, error) {
	for item := range strings.SplitSeq(text, ",") {
		encoded, is := strings.CutPrefix(strings.TrimSpace(item), "sha-256=:")
		if !is {
			continue
		}
		sum, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, ":"))
		if err != nil || len(sum) != sha256.Size || !strings.HasSuffix(encoded, ":") {
			return nil, fmt.Errorf("%s %.100q: want sha-256=:BASE64: as RFC 9530 has it", digestHeader, text)
		}
		return sum, nil
	}
	return nil, nil
}

func formatDigest(sum []byte) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum) + ":"
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
