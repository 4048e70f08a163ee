package host

import (
	_ "embed"
	"encoding/json"
	"slices"
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
