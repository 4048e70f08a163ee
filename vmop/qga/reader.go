package qga

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxReply is the longest accepted reply, in bytes, of commands that return the content of a file
// or the output of a program (see [Client.ExecStatus]). [MaxAnswer] is the longest of all others: a
// guest chooses them, and decoded they take many times as much memory.
const (
	MaxReply  = 4 << 20
	MaxAnswer = 64 << 10
)

// maxSkipped is the most bytes that are skipped in search of an answer: more than the longest
// unread reply. maxSkippedOutput is the same where a program's output was requested, of which
// agents keep 16 MiB: on this connection, or on an earlier one that left the rest of the reply in
// the port.
const (
	maxSkipped       = MaxAnswer
	maxSkippedOutput = 32 << 20
)

var answersAtLength = []string{"guest-exec-status", "guest-file-read"}

// sentinel is a byte that no JSON text contains. In a request it makes the agent discard an
// incomplete command, in a reply it marks the answer to guest-sync-delimited.
const sentinel = 0xff

type replyReader struct {
	r      *bufio.Reader
	limit  int
	skip   int // the most bytes that are skipped in search of an answer
	output bool
}

func newReplyReader(r io.Reader, limit int) *replyReader {
	return &replyReader{r: bufio.NewReader(r), limit: limit, skip: maxSkippedOutput}
}

func (r *replyReader) unread() bool { return r.r.Buffered() > 0 }

// line returns the next line that is not empty, without white space around it. The error is
// ErrTooLarge if it exceeds the limit; the rest is left unread.
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

func (r *replyReader) answer(command string) ([]byte, error) {
	limit := r.limit
	if slices.Contains(answersAtLength, command) {
		r.output, r.skip = true, maxSkippedOutput // from now on
	} else {
		r.limit = min(limit, MaxAnswer)
	}
	defer func() { r.limit = limit }()
	return r.line()
}

type syncReply struct {
	id   int64 // requests sent whose answers may come first
	sent int   // how many were sent whose answers may come first
	// refused, if not nil, is called with each whole line before a sentinel.
	refused func(line []byte)
	// other, if not nil, is called once, when an answer with another number has come. It returns
	// the number to expect from then on.
	other func() (int64, error)
}

// maxSyncReply is the maximum length of the answer to a guest-sync-delimited, in bytes.
const maxSyncReply = 64

// synchronize skips everything up to and including the wanted answer.
func (r *replyReader) synchronize(want syncReply) error {
	for left := r.skip + want.sent*maxSyncReply; ; {
		n, err := r.skipToSentinel(left, want.refused)
		if err != nil {
			return err
		}
		left -= n
		line, err := r.line()
		if errors.Is(err, ErrTooLarge) {
			left -= r.limit
			continue
		}
		if err != nil {
			return err
		}
		left -= len(line)
		// An answer to an earlier request that was cut off is followed by the later one on the same
		// line: the last sentinel counts.
		if i := bytes.LastIndexByte(line, sentinel); i >= 0 {
			line = line[i+1:]
		}
		reply, err := parseReply(line)
		if err != nil || reply.Error != nil {
			continue
		}
		var got int64
		if json.Unmarshal(reply.Return, &got) != nil {
			continue
		}
		if got == want.id {
			if !r.output {
				r.skip = maxSkipped // nothing is left from before
			}
			return nil
		}
		if want.other != nil {
			if want.id, err = want.other(); err != nil {
				return err
			}
			want.other = nil
		}
	}
}

func (r *replyReader) skipToSentinel(most int, refused func([]byte)) (n int, err error) {
	var line []byte // a whole line before a sentinel
	for n <= most {
		if _, err := r.r.Peek(1); err != nil {
			return n, err
		}
		chunk, _ := r.r.Peek(r.r.Buffered())
		at := bytes.IndexByte(chunk, sentinel)
		if at >= 0 {
			chunk = chunk[:at]
		}
		n += len(chunk)
		for rest := chunk; refused != nil && len(rest) > 0; {
			part, after, whole := bytes.Cut(rest, []byte("\n"))
			if line = append(line, part[:min(len(part), r.limit-len(line))]...); whole {
				refused(line)
				line = line[:0]
			}
			rest = after
		}
		if _, err := r.r.Discard(len(chunk)); err != nil {
			return n, err
		}
		if at >= 0 {
			_, err := r.r.Discard(1)
			return n, err
		}
	}
	return n, fmt.Errorf("%w: no answer in what it has sent", ErrTooLarge)
}

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
