package host

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// PublicImage is a cloud image of a distribution, by a name that people can remember.
type PublicImage struct {
	Name string `json:"name"`
	// URL is that of the latest image, and Checksums that of the list with its
	// checksum, which the distribution keeps beside it: it finds what was cut off or
	// damaged on its way, and is as trustworthy as the server.
	URL       string `json:"url"`
	Checksums string `json:"checksums"`
}

//go:embed images.json
var publicImages []byte

// PublicImages are the cloud images that have a name here, for x86-64. The list is a
// file of this package, and no server is asked for it.
func PublicImages() []PublicImage {
	var out []PublicImage
	if err := json.Unmarshal(publicImages, &out); err != nil {
		panic("host: images.json: " + err.Error()) // a part of this program
	}
	return out
}

// FindPublicImage is the public image of a name.
func FindPublicImage(name string) (PublicImage, bool) {
	all := PublicImages()
	i := slices.IndexFunc(all, func(p PublicImage) bool { return p.Name == name })
	if i < 0 {
		return PublicImage{}, false
	}
	return all[i], true
}

const (
	// maxChecksums is more than a list of checksums has, in bytes.
	maxChecksums = 1 << 20
	// checksumsTimeout bounds the wait for a list of checksums.
	checksumsTimeout = time.Minute
)

// listedChecksum gets the checksum of the image from its list.
func (i Image) listedChecksum(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, checksumsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.Checksums, nil)
	if err != nil {
		return "", err
	}
	client := i.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("checksums: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("checksums %s: the server answers %s", i.Checksums, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxChecksums))
	if err != nil {
		return "", fmt.Errorf("checksums %s: %w", i.Checksums, err)
	}
	u, err := url.Parse(i.Source)
	if err != nil {
		return "", err
	}
	sum := checksumOf(string(text), path.Base(u.Path))
	if sum == "" {
		return "", fmt.Errorf("checksums %s: there is none of %s", i.Checksums, path.Base(u.Path))
	}
	return sum, nil
}

// checksumOf finds a file's checksum in a list, as the programs sha256sum and sha512sum
// write it, or BSD's; "" if there is none.
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
