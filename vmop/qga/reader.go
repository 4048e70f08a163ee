package qga

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxReply is the longest reply that is accepted, in bytes. The output of a
// program (see [Client.ExecStatus]) is the only reply that gets anywhere near.
const MaxReply = 4 << 20

// sentinel is the byte that no JSON text contains. In a request it makes the
// agent forget half a command, in a reply it marks the answer to
// guest-sync-delimited.
const sentinel = 0xff

// replyReader finds replies in what an agent sends.
type replyReader struct {
	r     *bufio.Reader
	limit int
}

func newReplyReader(r io.Reader, limit int) *replyReader {
	return &replyReader{r: bufio.NewReader(r), limit: limit}
}

// unread tells whether something has arrived that nobody asked for.
func (r *replyReader) unread() bool { return r.r.Buffered() > 0 }

// line returns the next line that is not empty, without white space around it.
// It is ErrTooLarge if that is longer than the limit; the rest is not read then.
func (r *replyReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if len(line)+len(part) > r.limit {
			return nil, ErrTooLarge
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, err
		default:
			if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
				return trimmed, nil
			}
			line = line[:0]
		}
	}
}

// synchronize skips everything up to and including the answer to the
// guest-sync-delimited with the given number. What is skipped is not kept.
// If refused is not nil, it is called with each whole line before a sentinel.
func (r *replyReader) synchronize(id int64, refused func([]byte)) error {
	for {
		if err := r.skipToSentinel(refused); err != nil {
			return err
		}
		line, err := r.line()
		if errors.Is(err, ErrTooLarge) {
			continue
		}
		if err != nil {
			return err
		}
		// An answer to an earlier request that was cut off by a later one ends
		// with the later one: the last sentinel counts.
		if i := bytes.LastIndexByte(line, sentinel); i >= 0 {
			line = line[i+1:]
		}
		reply, err := parseReply(line)
		if err != nil || reply.Error != nil {
			continue
		}
		var got int64
		if json.Unmarshal(reply.Return, &got) == nil && got == id {
			return nil
		}
	}
}

// skipToSentinel reads to the next sentinel.
func (r *replyReader) skipToSentinel(refused func([]byte)) error {
	var line []byte
	for {
		b, err := r.r.ReadByte()
		if err != nil {
			return err
		}
		switch {
		case b == sentinel:
			return nil
		case refused == nil:
		case b == '\n':
			refused(line)
			line = line[:0]
		case len(line) < r.limit:
			line = append(line, b)
		}
	}
}

// reply is an agent's answer: one of the two fields is set.
type reply struct {
	Return json.RawMessage `json:"return"`
	Error  *Error          `json:"error"`
}

func parseReply(line []byte) (reply, error) {
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return reply{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if (r.Return == nil) == (r.Error == nil) {
		return reply{}, fmt.Errorf("%w: neither a result nor an error", ErrProtocol)
	}
	return r, nil
}
