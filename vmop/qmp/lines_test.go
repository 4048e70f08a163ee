package qmp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// chunks returns its parts one by one, as a socket does.
type chunks [][]byte

func (c *chunks) Read(b []byte) (int, error) {
	if len(*c) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*c)[0])
	if (*c)[0] = (*c)[0][n:]; len((*c)[0]) == 0 {
		*c = (*c)[1:]
	}
	return n, nil
}

func readLines(r *lineReader) (lines []string, err error) {
	for {
		line, err := r.next()
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}

// The same lines come out however the stream is cut into pieces, and they are
// what splitting the whole text would give.
func TestLinesDoNotDependOnChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 9000).Draw(t, "limit")
		var want []string
		var parts chunks
		for range rapid.IntRange(0, 20).Draw(t, "lines") {
			line := strings.Repeat("x", rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, limit)).Draw(t, "length")%(limit+1))
			if line != "" {
				want = append(want, line)
			}
			end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
			for rest := []byte(line + end); len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
				parts = append(parts, rest[:n])
				rest = rest[n:]
			}
		}
		r := newLineReader(&parts, limit)
		got, err := readLines(r)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("lines differ (-want +got):\n%s", diff)
		}
		if !errors.Is(err, io.EOF) {
			t.Fatalf("ended with %v", err)
		}
		if most := limit + lineEnd + 1; len(r.buf) > most && len(r.buf) > firstBuffer {
			t.Fatalf("buffer has grown to %d bytes with a limit of %d", len(r.buf), limit)
		}
	})
}

func TestLineOverTheLimitEndsTheStream(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("x", 11) + "\n",
		strings.Repeat("x", 5000), // without an end: not even buffered
	} {
		for name, src := range map[string]io.Reader{
			"at once":      strings.NewReader("fine\n" + text),
			"byte by byte": iotest.OneByteReader(strings.NewReader("fine\n" + text)),
		} {
			lines, err := readLines(newLineReader(src, 10))
			if !errors.Is(err, ErrTooLarge) || !slices.Equal(lines, []string{"fine"}) {
				t.Errorf("%s: got %q and %v, want ErrTooLarge after the first line", name, lines, err)
			}
		}
	}
}

func TestUnterminatedRestIsAnUnexpectedEnd(t *testing.T) {
	_, err := readLines(newLineReader(strings.NewReader(`{"return":`), 100))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// A client that has read one large message does not hold on to its memory.
func TestBufferShrinksAfterALargeMessage(t *testing.T) {
	parts := chunks{append(bytes.Repeat([]byte("x"), 1<<20), '\n'), []byte("y\n")}
	r := newLineReader(&parts, DefaultMaxMessage)
	if lines, _ := readLines(r); len(lines) != 2 {
		t.Fatalf("got %d lines", len(lines))
	}
	if len(r.buf) > keepBuffer {
		t.Errorf("buffer still has %d bytes", len(r.buf))
	}
}

// members decodes an object in the standard way, for comparison.
func members(t testing.TB, line []byte) map[string]json.RawMessage {
	m := make(map[string]json.RawMessage)
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return m
}

// checkMessage compares parseMessage with encoding/json.
func checkMessage(t testing.TB, line []byte) {
	m, err := parseMessage(line)
	if err != nil {
		if !errors.Is(err, ErrProtocol) {
			t.Fatalf("%q: unexpected kind of error %v", line, err)
		}
		return
	}
	if bytes.ContainsRune(line, '\\') {
		return // an escaped name is the same name to encoding/json, QEMU sends none
	}
	want := members(t, line)
	for name, got := range map[string][]byte{
		"QMP": m.qmp, "id": m.id, "return": m.result, "error": m.refusal,
		"event": m.event, "data": m.data, "timestamp": m.timestamp,
	} {
		if !bytes.Equal(got, want[name]) {
			t.Fatalf("%q: member %s is %q, want %q", line, name, got, want[name])
		}
	}
	// None of these may panic, whatever the values are.
	_, _ = m.greeting()
	_, _, _ = m.callID()
	_, _ = m.reply("x")
	_, _ = m.eventHead()
}

func TestMessagesAreParsedAsEncodingJSONDoes(t *testing.T) {
	var value *rapid.Generator[any]
	value = rapid.Deferred(func() *rapid.Generator[any] {
		return rapid.OneOf(
			rapid.Just[any](nil),
			rapid.Map(rapid.Bool(), func(v bool) any { return v }),
			rapid.Map(rapid.Int64(), func(v int64) any { return v }),
			rapid.Map(rapid.StringOf(rapid.RuneFrom([]rune(`{}[],:" x`))), func(v string) any { return v }),
			rapid.Map(rapid.SliceOfN(value, 0, 3), func(v []any) any { return v }),
			rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z{}]{1,3}`), value, 0, 3), func(v map[string]any) any { return v }),
		)
	})
	names := rapid.SampledFrom([]string{"QMP", "id", "return", "error", "event", "data", "timestamp", "other", ""})
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOf(names, value).Draw(t, "object")
		line, err := json.Marshal(object)
		if rapid.Bool().Draw(t, "indented") {
			line, err = json.MarshalIndent(object, " ", "\t")
		}
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMessage(line)
		if err != nil {
			return
		}
		want := make(map[string]json.RawMessage)
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]json.RawMessage{
			"QMP": m.qmp, "id": m.id, "return": m.result, "error": m.refusal,
			"event": m.event, "data": m.data, "timestamp": m.timestamp,
		}
		for name, value := range got {
			if !bytes.Equal(value, want[name]) {
				t.Fatalf("%q: member %s is %q, want %q", line, name, value, want[name])
			}
		}
	})
}

// FuzzReader feeds arbitrary bytes, cut at an arbitrary place, to everything
// that stands between the socket and the client.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		`{"QMP":{"version":{"qemu":{"micro":22,"minor":2,"major":7},"package":"x"},"capabilities":["oob"]}}` + "\r\n",
		`{"return":{},"id":1}` + "\r\n" + `{"return":[],"id":2}` + "\r\n",
		`{"id":3,"error":{"class":"GenericError","desc":"a \"quoted\" word"}}` + "\n",
		`{"timestamp":{"seconds":1,"microseconds":2},"event":"STOP"}` + "\n",
		`{"timestamp":{"seconds":-1,"microseconds":-1},"event":"RESET","data":{"guest":true,"reason":"x"}}` + "\n",
		`{"return":"}{\\` + `"],[","id":4}` + "\n", "{}\n", "[]\n", "null\n", "\n\n", "{\"return\":1 , \"id\" : 5 }\n",
		`{"return":1,"return":2}` + "\n", "\xff\xfe\n", `{"event":5}` + "\n", `{"return":`,
	} {
		f.Add([]byte(seed), uint(len(seed)/2), uint(len(seed)))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut, limit uint) {
		cut %= uint(len(stream) + 1)
		most := int(limit % (1 << 16))
		whole, wholeErr := readLines(newLineReader(bytes.NewReader(stream), most))
		parts := chunks{stream[:cut], stream[cut:]}
		if cut == 0 {
			parts = parts[1:]
		}
		lines, err := readLines(newLineReader(&parts, most))
		if !slices.Equal(whole, lines) || wholeErr.Error() != err.Error() {
			t.Fatalf("cut at %d: got %q and %v instead of %q and %v", cut, lines, err, whole, wholeErr)
		}
		for _, line := range lines {
			if len(line) > most {
				t.Fatalf("line of %d bytes with a limit of %d", len(line), most)
			}
			checkMessage(t, []byte(line))
		}
	})
}
