package imageinspect

import (
	"fmt"
	"io"
	"strings"
)

type fileReader interface {
	// readFile returns the content of the file with the name, ignoring case, and nil if there is
	// none.
	readFile(name string) ([]byte, error)
}

// examineSeed reads the documents if the volume is a NoCloud seed. cloud-init accepts the label in
// upper and lower case.
func examineSeed(report *Report, fs FileSystem, volume *io.SectionReader, partition int) {
	if !strings.EqualFold(fs.Label, "cidata") || report.NoCloud != nil {
		return
	}
	var files fileReader
	switch fs.Type {
	case "vfat":
		if v, ok := openFAT(volume); ok {
			files = v
		}
	case "iso9660":
		if v, ok := openISO9660(volume); ok {
			files = v
		}
	}
	if files == nil {
		report.note("cloud-init seed", fmt.Errorf("%w: file system %s", errNotExamined, fs.Type))
		return
	}
	seed := &NoCloud{Partition: partition}
	for _, doc := range []struct {
		name string
		to   **string
	}{
		{"meta-data", &seed.MetaData},
		{"user-data", &seed.UserData},
		{"network-config", &seed.NetworkConfig},
	} {
		content, err := files.readFile(doc.name)
		if err != nil {
			report.note("cloud-init seed: "+doc.name, err)
			continue
		}
		if content != nil {
			*doc.to = new(string(content))
		}
	}
	report.NoCloud = seed
}
