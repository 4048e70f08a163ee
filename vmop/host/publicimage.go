package host

import (
	_ "embed"
	"encoding/json"
	"slices"
)

// PublicImage is a cloud image of a distribution, by a memorable name.
type PublicImage struct {
	Name string `json:"name"`
	// URL is the latest image's, and Checksums that of the list with its checksum, which the
	// distribution serves beside it: it detects incomplete and damaged downloads, and is as
	// trustworthy as the server.
	URL       string `json:"url"`
	Checksums string `json:"checksums"`
}

//go:embed images.json
var publicImages []byte

// PublicImages are the cloud images that have a name here, for x86-64. The list is a file of this
// package; no server is queried.
func PublicImages() []PublicImage {
	var out []PublicImage
	if err := json.Unmarshal(publicImages, &out); err != nil {
		panic("host: images.json: " + err.Error()) // the file is embedded
	}
	return out
}

// FindPublicImage returns the public image of a name.
func FindPublicImage(name string) (PublicImage, bool) {
	all := PublicImages()
	i := slices.IndexFunc(all, func(p PublicImage) bool { return p.Name == name })
	if i < 0 {
		return PublicImage{}, false
	}
	return all[i], true
}
