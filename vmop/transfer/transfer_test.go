package transfer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/runner/tunnel"
)

const patience = 20 * time.Second

func identity(t *testing.T) tunnel.Identity {
	t.Helper()
	i, err := tunnel.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func atOnce(context.Context, int) error { return nil }

// upload is a receiver that waits for somebody.
type upload struct {
	*testing.T
	Receiver
	address string
	ended   chan result
}

type result struct {
	State
	error
}

// receive starts a receiver.
func receive(t *testing.T, change func(*Receiver)) *upload {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upload{T: t, Receiver: Receiver{Path: filepath.Join(t.TempDir(), "disk"), Max: 1 << 30, Own: identity(t), Wait: patience, Stall: patience}, address: l.Addr().String(), ended: make(chan result, 1)}
	if change != nil {
		change(&u.Receiver)
	}
	go func() {
		s, err := u.Receive(t.Context(), l)
		u.ended <- result{s, err}
	}()
	return u
}

func (u *upload) client() *Client {
	c := &Client{Address: u.address, Own: u.Own, Pause: atOnce}
	u.Cleanup(c.Close)
	return c
}

// end waits for the receiver's.
func (u *upload) end() result {
	u.Helper()
	select {
	case r := <-u.ended:
		return r
	case <-time.After(patience):
		u.Fatal("the receiver does not end")
		return result{}
	}
}

// raw makes a request as anybody can who has the key.
func (u *upload) raw(method, path string, head map[string]string, body io.Reader, length int64) (int, string) {
	u.Helper()
	c := u.client()
	r, err := http.NewRequestWithContext(u.Context(), method, "https://"+u.address+path, body)
	if err != nil {
		u.Fatal(err)
	}
	r.ContentLength = length
	for k, v := range head {
		r.Header.Set(k, v)
	}
	got, err := c.client().Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		u.Fatal(err)
	}
	return got.StatusCode, string(data)
}

func content(t *testing.T, n int) []byte {
	t.Helper()
	data := make([]byte, n)
	if _, err := rand.Read(data[:min(n, 100000)]); err != nil {
		t.Fatal(err)
	}
	return data
}

func (u *upload) has(want []byte) {
	u.Helper()
	got, err := os.ReadFile(u.Path)
	if err != nil || !bytes.Equal(got, want) {
		u.Errorf("the file has %d bytes, want %d: %v", len(got), len(want), err)
	}
}

// What is uploaded is there, with its holes as holes.
func TestUpload(t *testing.T) {
	u := receive(t, nil)
	data := content(t, 5<<20+1)
	var last atomic.Int64
	if err := u.client().Upload(t.Context(), bytes.NewReader(data), int64(len(data)), func(n int64) { last.Store(n) }); err != nil {
		t.Fatal(err)
	}
	if r := u.end(); r.error != nil || !r.Whole || r.Received != int64(len(data)) || last.Load() != int64(len(data)) {
		t.Errorf("%+v, told %d", r, last.Load())
	}
	u.has(data)
	if info, err := os.Stat(u.Path); err != nil || info.Sys().(*syscall.Stat_t).Blocks*512 > 1<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("%+v, %v", info, err)
	}
}

// breaking is a proxy that cuts connections off after some bytes of each.
func breaking(t *testing.T, to string, after int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				other, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer other.Close()
				go func() { _, _ = io.Copy(c, other) }()
				_, _ = io.CopyN(other, c, after)
			}()
		}
	}()
	return l.Addr().String()
}

// An upload that is cut off again and again goes on where it was.
func TestUploadGoesOn(t *testing.T) {
	u := receive(t, nil)
	data := content(t, 20<<20)
	c, direct := u.client(), u.client()
	c.Address = breaking(t, u.address, 6<<20)
	c.Pause = func(ctx context.Context, _ int) error { // until the other end has seen it, too
		for {
			if s, err := direct.State(ctx); err != nil || !s.Busy {
				return err
			}
		}
	}
	if err := c.Upload(t.Context(), bytes.NewReader(data), int64(len(data)), func(int64) {}); err != nil {
		t.Fatal(err)
	}
	if r := u.end(); r.error != nil {
		t.Fatal(r.error)
	}
	u.has(data)
}

// Another content of the same length does not go on with what there is of the first.
func TestAnotherUploadBeginsAnew(t *testing.T) {
	u := receive(t, nil)
	first, second := content(t, 1<<20), content(t, 1<<20)
	if code, said := u.raw(http.MethodPut, uploadPath, map[string]string{"Content-Range": "bytes 0-99999/1048576"}, bytes.NewReader(first[:100000]), 100000); code != http.StatusAccepted {
		t.Fatal(code, said)
	}
	if err := u.client().Upload(t.Context(), bytes.NewReader(second), int64(len(second)), func(int64) {}); err != nil {
		t.Fatal(err)
	}
	if r := u.end(); r.error != nil {
		t.Fatal(r.error)
	}
	u.has(second)
}

// curl's way: the whole, with or without its length.
func TestUploadOfTheWhole(t *testing.T) {
	for name, length := range map[string]int64{"with its length": 3 << 20, "without": -1} {
		t.Run(name, func(t *testing.T) {
			u := receive(t, nil)
			data := content(t, 3<<20)
			if code, said := u.raw(http.MethodPut, uploadPath, nil, io.MultiReader(bytes.NewReader(data)), length); code != http.StatusOK {
				t.Fatal(code, said)
			}
			if r := u.end(); r.error != nil || r.Total != 3<<20 {
				t.Errorf("%+v", r)
			}
			u.has(data)
		})
	}
}

// What is not as it was said to be is no upload, and another one can be made.
func TestHostileUploads(t *testing.T) {
	data := content(t, 1<<20)
	for name, c := range map[string]struct {
		head   map[string]string
		body   io.Reader
		length int64
		code   int
		says   string
	}{
		"another digest":        {map[string]string{digestHeader: formatDigest(make([]byte, 32))}, bytes.NewReader(data), 1 << 20, http.StatusUnprocessableEntity, "not the 0000"},
		"no digest":             {map[string]string{digestHeader: "sha-256=:e:"}, bytes.NewReader(data), 1 << 20, http.StatusBadRequest, "sha-256"},
		"too large":             {nil, bytes.NewReader(make([]byte, 2<<20+1)), 2<<20 + 1, http.StatusRequestEntityTooLarge, "at most"},
		"too large, not said":   {nil, io.MultiReader(bytes.NewReader(make([]byte, 2<<20+1))), -1, http.StatusRequestEntityTooLarge, "more came"},
		"more than its range":   {map[string]string{"Content-Range": "bytes 0-9/1048576"}, io.MultiReader(bytes.NewReader(data)), -1, http.StatusRequestEntityTooLarge, "more came"},
		"another length":        {map[string]string{"Content-Range": "bytes 0-9/1048576"}, bytes.NewReader(data[:11]), 11, http.StatusBadRequest, "the body has 11 bytes"},
		"a part of what is not": {map[string]string{"Content-Range": "bytes 10-19/1048576"}, bytes.NewReader(data[:10]), 10, http.StatusConflict, `"received":0`},
		"less than its range":   {map[string]string{"Content-Range": "bytes 0-9/1048576"}, io.MultiReader(bytes.NewReader(data[:5])), -1, http.StatusBadRequest, "after 5 bytes"},
		"no range":              {map[string]string{"Content-Range": "bytes */5"}, bytes.NewReader(data[:5]), 5, http.StatusBadRequest, "Content-Range"},
	} {
		t.Run(name, func(t *testing.T) {
			u := receive(t, func(r *Receiver) { r.Max = 2 << 20 })
			if code, said := u.raw(http.MethodPut, uploadPath, c.head, c.body, c.length); code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("%d %s, want %d %s", code, said, c.code, c.says)
			}
			select {
			case r := <-u.ended:
				t.Fatalf("it has ended: %+v", r)
			default:
			}
			if err := u.client().Upload(t.Context(), bytes.NewReader(data), int64(len(data)), func(int64) {}); err != nil {
				t.Fatal(err)
			}
			if r := u.end(); r.error != nil {
				t.Fatal(r.error)
			}
			u.has(data)
		})
	}
}

// Nobody without the key gets an answer, nor a stranger the content.
func TestStrangers(t *testing.T) {
	u := receive(t, nil)
	other := &Client{Address: u.address, Own: identity(t), Pause: atOnce}
	defer other.Close()
	if err := other.Upload(t.Context(), bytes.NewReader([]byte("x")), 1, func(int64) {}); !errors.Is(err, tunnel.ErrStranger) {
		t.Errorf("another key: %v", err)
	}
	// One that does not look at who answers.
	blind := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer blind.CloseIdleConnections()
	for _, scheme := range []string{"http", "https"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, scheme+"://"+u.address+uploadPath, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := blind.Do(r)
		if err == nil {
			_ = got.Body.Close()
			if got.StatusCode != http.StatusBadRequest || scheme == "https" {
				t.Errorf("%s: %s", scheme, got.Status)
			}
		}
	}
	if s, err := u.client().State(t.Context()); err != nil || s.Received != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Of two who upload at a time the second is told so, and the first gets on.
func TestTwoUploaders(t *testing.T) {
	u := receive(t, nil)
	data := content(t, 1<<20)
	r, w := io.Pipe()
	first := make(chan string, 1)
	go func() {
		code, said := u.raw(http.MethodPut, uploadPath, nil, r, int64(len(data)))
		first <- fmt.Sprint(code, said)
	}()
	if _, err := w.Write(data[:100]); err != nil {
		t.Fatal(err)
	}
	for s := (State{}); s.Received < 100; {
		var err error
		if s, err = u.client().State(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.client().Upload(t.Context(), bytes.NewReader(data), int64(len(data)), func(int64) {}); !errors.Is(err, ErrBusy) {
		t.Errorf("the second: %v", err)
	}
	if code, said := u.raw(http.MethodPut, uploadPath, nil, bytes.NewReader(data), int64(len(data))); code != http.StatusConflict {
		t.Errorf("the third: %d %s", code, said)
	}
	if _, err := w.Write(data[100:]); err != nil {
		t.Fatal(err)
	}
	if said := <-first; !strings.HasPrefix(said, "200") {
		t.Error(said)
	}
	if r := u.end(); r.error != nil {
		t.Fatal(r.error)
	}
	u.has(data)
}

// Who sends nothing is cut off, and what came is kept; who does not come again is not
// waited for, and nothing is left.
func TestSlowUploads(t *testing.T) {
	u := receive(t, func(r *Receiver) { r.Stall, r.Wait = 50*time.Millisecond, 500*time.Millisecond })
	r, w := io.Pipe()
	defer w.Close()
	go func() { _, _ = w.Write(make([]byte, 100)) }()
	if code, said := u.raw(http.MethodPut, uploadPath, nil, r, 1<<20); code != http.StatusBadRequest && code != 0 {
		t.Errorf("%d %s", code, said)
	}
	if r := u.end(); !errors.Is(r.error, ErrAbandoned) || !strings.Contains(r.error.Error(), "100 bytes of 1048576") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Lstat(u.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
	if r := receive(t, func(r *Receiver) { r.Wait = time.Millisecond }).end(); !errors.Is(r.error, ErrNobody) {
		t.Errorf("%+v", r)
	}
}

// A storage that is full ends the upload with that.
func TestUploadToFullStorage(t *testing.T) {
	u := receive(t, nil)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: syscallInfinity(t)}); err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte{1}, 2<<20)
	err := u.client().Upload(t.Context(), bytes.NewReader(data), int64(len(data)), func(int64) {})
	r := u.end()
	if lerr := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: syscallInfinity(t), Max: syscallInfinity(t)}); lerr != nil {
		t.Fatal(lerr)
	}
	if err == nil || r.error == nil || !strings.Contains(r.error.Error(), "cannot be stored") {
		t.Errorf("%v, %v", err, r.error)
	}
}

func syscallInfinity(t *testing.T) uint64 {
	t.Helper()
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &r); err != nil {
		t.Fatal(err)
	}
	return r.Max
}

// give starts a server.
func give(t *testing.T, data io.ReaderAt, size int64, change func(*Server)) (*Client, chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Content: data, Size: size, Format: "raw", Own: identity(t), Wait: patience, Stall: patience}
	if change != nil {
		change(s)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context(), l) }()
	c := &Client{Address: l.Addr().String(), Own: s.Own}
	t.Cleanup(c.Close)
	return c, ended
}

// target is a file that a download is made of, with what there is of it.
func target(t *testing.T, has []byte) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "got"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.Write(has); err != nil {
		t.Fatal(err)
	}
	return f
}

// is fails if the file has another content.
func is(t *testing.T, f *os.File, want []byte) {
	t.Helper()
	got, err := os.ReadFile(f.Name())
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file has %d bytes, want %d: %v", len(got), len(want), err)
	}
}

// blocks is what a file takes of its storage, in bytes.
func blocks(t *testing.T, f *os.File) int64 {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

// large is a content of two parts and a bit, mostly zeros, each part another one.
func large(t *testing.T) []byte {
	t.Helper()
	data := content(t, 2*partSize+1001)
	copy(data[partSize+4096:], data[:5000])
	data[len(data)-1] = 1
	return data
}

// What is downloaded is what is there, with its holes as holes, whatever a former attempt
// has left of it, which is not sent again.
func TestDownload(t *testing.T) {
	data := large(t)
	other := bytes.Clone(data)
	other[partSize+partSize/2] = 7
	for name, c := range map[string]struct {
		has  []byte
		kept int64
	}{
		"anew":                     {nil, 0},
		"a part and a bit":         {data[:partSize+100], partSize},
		"all of it":                {data, int64(len(data))},
		"another disk of the size": {bytes.Repeat([]byte{9}, len(data)), 0},
		"one part has changed":     {other, partSize + 1001},
		"a longer file":            {append(bytes.Clone(data), data...), int64(len(data))},
	} {
		t.Run(name, func(t *testing.T) {
			client, ended := give(t, bytes.NewReader(data), int64(len(data)), nil)
			f := target(t, c.has)
			var last atomic.Int64
			d, err := client.Download(t.Context(), f, func(n, _ int64) { last.Store(n) })
			if err != nil || d.Format != "raw" || d.Size != int64(len(data)) || d.Kept != c.kept || last.Load() != d.Size || d.SHA256 != fmt.Sprintf("%x", sha256.Sum256(data)) {
				t.Errorf("%+v, %v, told %d; want %d kept", d, err, last.Load(), c.kept)
			}
			is(t, f, data)
			if n := blocks(t, f); c.has == nil && n > 1<<20 {
				t.Errorf("it takes %d bytes", n)
			}
			if err := client.Done(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// The whole of it and its parts are resources that any client of HTTP can read.
func TestPartsOfADownload(t *testing.T) {
	data := large(t)
	c, _ := give(t, bytes.NewReader(data), int64(len(data)), nil)
	sum := fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(data[2*partSize:])))
	for _, q := range []struct {
		path, match string
		code        int
		says        string
	}{
		{"/disk", "", 200, fmt.Sprintf(`{"format":"raw","size":%d,"part":%d}`+"\n", len(data), partSize)},
		{"/disk/2", "", 200, string(data[2*partSize:])},
		{"/disk/2", sum, 304, ""},
		{"/disk/2", `"another"`, 200, string(data[2*partSize:])},
		{"/disk/3", "", 404, "404 page not found\n"},
		{"/disk/-1", "", 404, "404 page not found\n"},
		{"/disk/99999999999999999999", "", 404, "404 page not found\n"},
		{"/disk/9223372036854775807", "", 404, "404 page not found\n"},
		{"/disk/", "", 404, "404 page not found\n"},
		{"/upload", "", 404, "404 page not found\n"},
	} {
		got, err := c.get(t.Context(), q.path, map[string]string{"If-None-Match": q.match})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(got.Body)
		if got.StatusCode != q.code || string(body) != q.says || err != nil {
			t.Errorf("%s %s: %d, %d bytes, %v", q.path, q.match, got.StatusCode, len(body), err)
		}
		_ = got.Body.Close()
	}
}

// damaged has a part that cannot be read.
type damaged struct{ *bytes.Reader }

func (d damaged) ReadAt(p []byte, at int64) (int, error) {
	if at >= partSize {
		return 0, syscall.EIO
	}
	return d.Reader.ReadAt(p, at)
}

// What cannot be read is no download, and is told at both ends.
func TestDownloadOfADamagedDisk(t *testing.T) {
	data := large(t)
	for name, c := range map[string]struct {
		io.ReaderAt
		why error
	}{"an error": {damaged{bytes.NewReader(data)}, syscall.EIO}, "it is shorter": {bytes.NewReader(data[:partSize]), io.EOF}} {
		t.Run(name, func(t *testing.T) {
			client, ended := give(t, c, int64(len(data)), nil)
			if d, err := client.Download(t.Context(), target(t, nil), func(int64, int64) {}); err == nil || !strings.Contains(err.Error(), "500") {
				t.Errorf("%+v, %v", d, err)
			}
			if err := <-ended; !errors.Is(err, c.why) {
				t.Error(err)
			}
		})
	}
}

// A download that is cut off goes on, as often as something has come; one that is cut off
// for good is an error, and so is one that nobody goes on with.
func TestDownloadThatIsCutOff(t *testing.T) {
	data := large(t)
	// Which cannot be packed, so that each part is cut off.
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		after int64
		good  bool
	}{"after a part": {partSize + partSize/2, true}, "at once": {20000, false}} {
		t.Run(name, func(t *testing.T) {
			client, ended := give(t, bytes.NewReader(data), int64(len(data)), func(s *Server) {
				if !c.good {
					s.Wait = time.Second
				}
			})
			client.Address, client.Pause = breakingBack(t, client.Address, c.after), atOnce
			f := target(t, nil)
			d, err := client.Download(t.Context(), f, func(int64, int64) {})
			if (err == nil) != c.good {
				t.Errorf("%+v, %v", d, err)
			}
			if c.good {
				is(t, f, data)
				return
			}
			if err := <-ended; !errors.Is(err, ErrNobody) {
				t.Error(err)
			}
		})
	}
}

// A server that sends something else than it says is not believed.
func TestHostileDownloads(t *testing.T) {
	good := Offer{Format: "raw", Size: 100, Part: 60}
	packed := func(data []byte) []byte {
		out, err := pack(data)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	sum := func(data []byte) string { d := sha256.Sum256(data); return formatDigest(d[:]) }
	for name, c := range map[string]struct {
		offer Offer
		body  []byte
		of    string
		code  int
		says  string
	}{
		"no size":           {offer: Offer{Format: "raw", Part: 60}, says: "cannot be understood"},
		"a negative size":   {offer: Offer{Format: "raw", Size: -1, Part: 60}, says: "cannot be understood"},
		"no parts":          {offer: Offer{Format: "raw", Size: 100}, says: "cannot be understood"},
		"a part too large":  {offer: Offer{Format: "raw", Size: 100, Part: maxPart + 1}, says: "cannot be understood"},
		"an unknown format": {offer: Offer{Format: "vmdk", Size: 100, Part: 60}, says: "cannot be understood"},
		"a bomb":            {offer: good, body: packed(make([]byte, 32<<20)), of: sum(make([]byte, 60)), code: 200, says: "damaged"}, // the second part is, and nothing behind the first one is looked at
		"too little":        {offer: good, body: packed(make([]byte, 59)), of: sum(make([]byte, 59)), code: 200, says: "damaged"},
		"another part":      {offer: good, body: packed(bytes.Repeat([]byte{1}, 60)), of: sum(make([]byte, 60)), code: 200, says: "damaged"},
		"no zstd":           {offer: good, body: make([]byte, 60), of: sum(make([]byte, 60)), code: 200, says: "damaged"},
		"no digest":         {offer: good, body: packed(make([]byte, 60)), code: 200, says: "cannot be understood"},
		"has it already":    {offer: good, code: 304, says: "304"},
	} {
		t.Run(name, func(t *testing.T) {
			own := identity(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(serve(l, own, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == diskPath {
					answer(w, http.StatusOK, c.offer)
					return
				}
				w.Header().Set(digestHeader, c.of)
				w.Header().Set("Content-Encoding", zstdCoding)
				w.WriteHeader(c.code)
				_, _ = w.Write(c.body)
			})))
			client := &Client{Address: l.Addr().String(), Own: own, Pause: atOnce}
			t.Cleanup(client.Close)
			f := target(t, nil)
			d, err := client.Download(t.Context(), f, func(int64, int64) {})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v, %v, want %q", d, err, c.says)
			}
			if n := blocks(t, f); n > 1<<20 {
				t.Errorf("%d bytes are written", n)
			}
		})
	}
}

// breakingBack is a proxy that cuts each way back off after some bytes.
func breakingBack(t *testing.T, to string, after int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				other, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer other.Close()
				go func() { _, _ = io.Copy(other, c) }()
				_, _ = io.CopyN(c, other, after)
			}()
		}
	}()
	return l.Addr().String()
}

// Whatever a head says, what is made of it is within what it is about.
func FuzzHead(f *testing.F) {
	f.Add("bytes 0-9/10", "sha-256=:AAAA:", int64(10))
	f.Add("bytes 5-5/6", formatDigest(make([]byte, 32)), int64(-1))
	f.Add("", "sha-512=:x:, sha-256=:", int64(3))
	f.Fuzz(func(t *testing.T, span, sum string, body int64) {
		if p, err := parsePart(span, max(body, -1)); err == nil && span != "" &&
			(p.from < 0 || p.length <= 0 || p.from+p.length > p.total || body >= 0 && p.length != body || p.from+p.length < p.from) {
			t.Errorf("%q, %d: %+v", span, body, p)
		}
		if d, err := parseDigest(sum); err == nil && d != nil && len(d) != 32 {
			t.Errorf("%q: %x", sum, d)
		}
	})
}

// Of an upload that was sent to its end, and not answered, nobody knows whether the pod has
// it; of one that was cut off before, it has not, and one that it refuses is no riddle.
func TestUploadThatIsNotAnswered(t *testing.T) {
	const all = 64 << 20 // more than the sockets of both ends hold
	data := content(t, all)
	for name, c := range map[string]struct {
		// reads is how much of an upload the pod reads before the connection is cut off,
		// and later of a second one.
		reads, later int64
		// again is what it says of itself then, nil if it does not listen any more.
		again *State
		want  bool
	}{
		"behind its end": {reads: all, want: true}, "in the middle": {reads: 1 << 20},
		"and the pod has nothing of it": {reads: all, later: 1 << 20, again: &State{}}, "and somebody else uploads": {reads: all, again: &State{Busy: true}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			own, sent := identity(t), false
			var mu sync.Mutex // of sent
			end := serve(l, own, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case r.Method == http.MethodPut:
					n := c.reads
					if sent {
						n = c.later
					}
					sent = true
					if _, err := io.CopyN(io.Discard, r.Body, n); err != nil {
						t.Error(err)
					}
					panic(http.ErrAbortHandler)
				case !sent:
					answer(w, http.StatusOK, State{})
				case c.again == nil:
					panic(http.ErrAbortHandler)
				default:
					answer(w, http.StatusOK, c.again)
				}
			}))
			t.Cleanup(end)
			client := &Client{Address: l.Addr().String(), Own: own, Pause: atOnce}
			t.Cleanup(client.Close)
			err = client.Upload(t.Context(), bytes.NewReader(data), int64(len(data)), func(int64) {})
			if err == nil || errors.Is(err, ErrUnanswered) != c.want {
				t.Errorf("%v", err)
			}
		})
	}
}
