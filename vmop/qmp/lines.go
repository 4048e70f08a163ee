package qmp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// firstBuffer is what an idle connection keeps. Ordinary replies and events have a few hundred
	// bytes.
	firstBuffer = 4 << 10
	// keepBuffer is the size up to which a grown buffer is kept for the next message. The schema
	// needs over 200 KiB, once per connection.
	keepBuffer = 64 << 10
	// lineEnd is the length of "\r\n", which the limit does not include.
	lineEnd = 2
)

// lineReader splits a byte stream into QMP messages, one per line. It never holds more than limit
// bytes plus what one read of the source returned.
type lineReader struct {
	src   io.Reader
	limit int
	buf   []byte // unread bytes are buf[start:end]
	start int
	end   int
	seen  int // bytes after start that are known to hold no newline
}

func newLineReader(src io.Reader, limit int) *lineReader {
	return &lineReader{src: src, limit: limit, buf: make([]byte, min(firstBuffer, limit+lineEnd+1))}
}

// next returns the next line without its line end. The slice is valid until the following call. An
// unterminated rest at the end of the stream is not a whole message: it is dropped and reported as
// io.ErrUnexpectedEOF.
func (r *lineReader) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(r.buf[r.start+r.seen:r.end], '\n'); i >= 0 {
			line := bytes.TrimSpace(r.buf[r.start : r.start+r.seen+i])
			r.start += r.seen + i + 1
			r.seen = 0
			switch {
			case len(line) > r.limit:
				return nil, fmt.Errorf("%w of %d bytes", ErrTooLarge, r.limit)
			case len(line) == 0:
				continue
			}
			return line, nil
		}
		r.seen = r.end - r.start
		if r.seen > r.limit+lineEnd {
			return nil, fmt.Errorf("%w of %d bytes", ErrTooLarge, r.limit)
		}
		r.makeRoom()
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) && r.seen > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// makeRoom guarantees space for at least one byte after the unread ones, and releases a buffer that
// was grown for one large message.
func (r *lineReader) makeRoom() {
	switch {
	case r.seen == 0 && len(r.buf) > keepBuffer:
		r.buf, r.start, r.end = make([]byte, firstBuffer), 0, 0
	case r.seen == 0:
		r.start, r.end = 0, 0
	case r.end < len(r.buf):
	case r.start > 0:
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	default:
		// One byte more than the maximum, to detect a message that is too long.
		grown := make([]byte, max(len(r.buf)+1, min(2*len(r.buf), r.limit+lineEnd+1)))
		r.end = copy(grown, r.buf[:r.end])
		r.buf = grown
	}
}
