package imagesource

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

const (
	// maxChecksums bounds the length of a list of checksums, in bytes.
	maxChecksums     = 1 << 20
	checksumsTimeout = time.Minute
)

// ListedChecksum fetches the checksum of an http or https source from a list at a URL, in the
// format of sha256sum and sha512sum, or BSD's.
func ListedChecksum(ctx context.Context, list string, s Source, o Options) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, checksumsTimeout, fmt.Errorf("the server took longer than %v", checksumsTimeout))
	defer cancel()
	fail := func(err error) (string, error) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("checksums %s: %w", redact(list), plain(err))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, list, nil)
	if err != nil {
		return fail(err)
	}
	f := &fetch{Source: Source{Location: list, CA: s.CA}, o: o}
	client, err := f.client()
	if err != nil {
		return fail(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fail(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fail(fmt.Errorf("the server answers %s", status(answer)))
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxChecksums))
	if err != nil {
		return fail(err)
	}
	u, err := url.Parse(s.Location)
	if err != nil {
		return fail(err)
	}
	sum := checksumOf(string(text), path.Base(u.Path))
	if sum == "" {
		return fail(fmt.Errorf("there is none of %s", path.Base(u.Path)))
	}
	return sum, nil
}

func checksumOf(list, file string) string {
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		var sum string
		switch {
		case len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == file:
			sum = fields[0]
		case len(fields) == 4 && fields[1] == "("+file+")" && fields[2] == "=":
			sum = fields[3]
		}
		switch b, err := hex.DecodeString(sum); {
		case err != nil:
		case len(b) == sha256.Size:
			return "sha256:" + sum
		case len(b) == sha512.Size:
			return "sha512:" + sum
		}
	}
	return ""
}
