package cloudinit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem"
	"github.com/diskfs/go-diskfs/filesystem/fat12"
	"github.com/diskfs/go-diskfs/filesystem/fat16"
)

const (
	// Label is the label by which cloud-init finds a NoCloud seed.
	Label = "CIDATA"

	// MaxSize is the largest total size of the documents that [Image] accepts, in bytes. The image
	// is built in memory, and cloud-init reads the documents into memory too.
	MaxSize = 256 << 20
)

const (
	metaDataName      = "meta-data"
	userDataName      = "user-data"
	networkConfigName = "network-config"
)

// ErrTooLarge means that the documents exceed [MaxSize].
var ErrTooLarge = errors.New("cloud-init documents are too large")

const (
	// imageAlign is the unit of an image's size in bytes: whole sectors of 512 and of 4096 bytes.
	imageAlign = 4096
	// minImageSize leaves room for the tables and a few kilobytes of documents. Most seeds have
	// this size.
	minImageSize = 128 << 10
	// largestFAT12 is the size in bytes up to which a volume is FAT12; from smallestFAT16 on it is
	// FAT16. Drivers decide by the number of clusters alone, and go-diskfs' choice of cluster sizes
	// leaves a gap between the two.
	largestFAT12  = 4 << 20
	smallestFAT16 = 5 << 20
)

// Image returns the seed: the raw image of a FAT volume without a partition table, labelled
// [Label], with the documents in its root directory. Its size is a multiple of 4096 bytes; attach
// it read-only.
//
// The image is a function of the documents alone: the volume's serial number is derived from them,
// and all timestamps are the start of FAT's calendar.
//
// MetaData and UserData are written even when empty, because cloud-init does not recognize a volume
// without the two files. The error is [ErrTooLarge] beyond [MaxSize].
func Image(docs Documents) ([]byte, error) {
	files := []struct {
		name    string
		content []byte
	}{
		{metaDataName, docs.MetaData},
		{userDataName, docs.UserData},
	}
	if docs.NetworkConfig != nil {
		files = append(files, struct {
			name    string
			content []byte
		}{networkConfigName, docs.NetworkConfig})
	}

	var total int64
	serial := sha256.New()
	for _, f := range files {
		total += int64(len(f.content))
		// The lengths distinguish documents that differ only in where one ends.
		fmt.Fprintf(serial, "%s %d\n", f.name, len(f.content))
		serial.Write(f.content)
	}
	if total > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, total, MaxSize)
	}

	image := make([]byte, imageSize(total))
	fs, err := format(image)
	if err != nil {
		return nil, fmt.Errorf("format cloud-init volume: %w", err)
	}
	for _, f := range files {
		if err := writeFile(fs, f.name, f.content); err != nil {
			return nil, fmt.Errorf("cloud-init volume: %s: %w", f.name, err)
		}
	}
	if err := normalize(image, binary.LittleEndian.Uint32(serial.Sum(nil))); err != nil {
		return nil, fmt.Errorf("cloud-init volume: %w", err)
	}
	return image, nil
}

// WriteImage writes the image of docs to w, see [Image].
func WriteImage(w io.Writer, docs Documents) error {
	image, err := Image(docs)
	if err != nil {
		return err
	}
	_, err = w.Write(image)
	return err
}

// imageSize returns the size of a volume that holds total bytes of documents: with the tables of
// FAT16 (at most two tables of 2 bytes per cluster of at least 1 KiB, 1/256), the root directory,
// and the unused ends of clusters.
func imageSize(total int64) int64 {
	const fixed = 128 << 10
	size := max(total+total/128+fixed, minImageSize)
	if size > largestFAT12 {
		size = max(size, smallestFAT16)
	}
	return (size + imageAlign - 1) / imageAlign * imageAlign
}

func format(image []byte) (filesystem.FileSystem, error) {
	const (
		start, sector = 0, 512
		reproducible  = true
	)
	size := int64(len(image))
	storage := file.New(&memory{data: image}, false)
	if size <= largestFAT12 {
		return fat12.Create(storage, size, start, sector, Label, reproducible)
	}
	return fat16.Create(storage, size, start, sector, Label, reproducible)
}

func writeFile(fs filesystem.FileSystem, name string, content []byte) error {
	f, err := fs.OpenFile("/"+name, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(f, bytes.NewReader(content))
	return err
}
