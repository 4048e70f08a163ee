package imagesource

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// checkXZ reads the metadata of an xz file, from its end: the indices of its streams, and the
// headers of all their blocks. It returns the declared unpacked length. The unpacker allocates as
// much memory as blocks declare, up to 4 GiB, and therefore must not see a file that this refuses.
// Section numbers refer to "The .xz File Format" 1.2.0.
func checkXZ(file io.ReaderAt, size int64) (uint64, error) {
	var total, wanted uint64
	end := size
	for end > 0 {
		// 2.2: padding in units of four zeros.
		word := make([]byte, 4)
		if end < 4 {
			return 0, errXZ("its end is missing")
		}
		if _, err := file.ReadAt(word, end-4); err != nil {
			return 0, err
		}
		if bytes.Equal(word, make([]byte, 4)) && end < size+1 {
			if end -= 4; end == 0 || size-end > maxXZPadding {
				return 0, errXZ("its end is missing")
			}
			continue
		}
		start, n, memory, err := checkXZStream(file, end)
		if err != nil {
			return 0, err
		}
		if total += n; total < n {
			return 0, errXZ("its lengths make no sense")
		}
		// Each block is allocated separately, one after the other.
		if wanted += memory; wanted > 2*maxWindow+maxMemoryPerByte*min(total, 1<<40) {
			return 0, errXZ("it has blocks that need much memory for little content")
		}
		end = start
	}
	return total, nil
}

// maxXZPadding bounds the padding behind the last stream, which is read word by word.
const maxXZPadding = 1 << 20

// maxMemoryPerByte is how much memory blocks may declare for each byte in them: eight MiB for a
// block of a quarter of one. xz itself makes blocks three times as large as their dictionary.
const maxMemoryPerByte = 32

func errXZ(what string) error { return errors.New(what) }

const xzHeaderSize = 12

// checkXZStream checks the stream that ends at a position, and returns its start, its unpacked
// length and the memory that its blocks declare, in bytes.
func checkXZStream(file io.ReaderAt, end int64) (start int64, length, memory uint64, err error) {
	// 2.1.2: the footer.
	footer := make([]byte, xzHeaderSize)
	if end < 2*xzHeaderSize {
		return 0, 0, 0, errXZ("its end is missing")
	}
	if _, err := file.ReadAt(footer, end-xzHeaderSize); err != nil {
		return 0, 0, 0, err
	}
	if string(footer[10:]) != "YZ" || binary.LittleEndian.Uint32(footer) != crc32.ChecksumIEEE(footer[4:10]) {
		return 0, 0, 0, errXZ("its end is missing")
	}
	indexSize := (int64(binary.LittleEndian.Uint32(footer[4:])) + 1) * 4
	indexAt := end - xzHeaderSize - indexSize
	if indexAt < xzHeaderSize {
		return 0, 0, 0, errXZ("its index is longer than itself")
	}
	// 4: the index, whose records add up to the position of the first block. It is read twice
	// rather than kept.
	var blocks int64
	err = xzIndex(file, indexAt, indexSize, func(unpadded, uncompressed uint64) error {
		padded := (unpadded + 3) &^ 3
		if unpadded < 5 || padded < unpadded || padded > uint64(indexAt) {
			return errXZ("its index makes no sense")
		}
		if blocks += int64(padded); blocks > indexAt {
			return errXZ("its index makes no sense")
		}
		if length += uncompressed; length < uncompressed {
			return errXZ("its index makes no sense")
		}
		return nil
	})
	if err != nil {
		return 0, 0, 0, err
	}
	at := indexAt - blocks
	start = at - xzHeaderSize
	if start < 0 {
		return 0, 0, 0, errXZ("its index makes no sense")
	}
	err = xzIndex(file, indexAt, indexSize, func(unpadded, _ uint64) error {
		n, err := checkXZBlock(file, at)
		if err != nil {
			return err
		}
		memory += n
		at += int64((unpadded + 3) &^ 3)
		return nil
	})
	return start, length, memory, err
}

func xzIndex(file io.ReaderAt, at, size int64, do func(unpadded, uncompressed uint64) error) error {
	r := bufio.NewReaderSize(io.NewSectionReader(file, at, size), 64<<10)
	if b, err := r.ReadByte(); err != nil || b != 0 {
		return errXZ("its index is missing")
	}
	n, err := binary.ReadUvarint(r)
	if err != nil || n > uint64(size)/2 {
		return errXZ("its index makes no sense")
	}
	for range n {
		unpadded, err := binary.ReadUvarint(r)
		if err != nil {
			return errXZ("its index makes no sense")
		}
		uncompressed, err := binary.ReadUvarint(r)
		if err != nil {
			return errXZ("its index makes no sense")
		}
		if err := do(unpadded, uncompressed); err != nil {
			return err
		}
	}
	return nil
}

// checkXZBlock returns the memory that a block's header (3.1) declares.
func checkXZBlock(file io.ReaderAt, at int64) (memory uint64, err error) {
	header := make([]byte, 1024)
	n, err := file.ReadAt(header, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	size := (int(header[0]) + 1) * 4
	if n < size || header[0] == 0 {
		return 0, errXZ("the header of a block makes no sense")
	}
	flags, rest := header[1], header[2:size-4]
	for _, has := range []byte{0x40, 0x80} { // sizes
		if flags&has == 0 {
			continue
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return 0, errXZ("the header of a block makes no sense")
		}
		rest = rest[n:]
	}
	// 5.3.1: one filter, LZMA2, with one byte of properties.
	if flags&0x3f != 0 || len(rest) < 3 || rest[0] != 0x21 || rest[1] != 1 {
		return 0, errXZ("it is packed with filters other than LZMA2")
	}
	if rest[2] > 40 {
		return 0, errXZ("the header of a block makes no sense")
	}
	memory = xzDictionary(rest[2])
	if memory > maxWindow {
		return 0, fmt.Errorf("unpacking it would take more than %s of memory", quantity(maxWindow))
	}
	return memory, nil
}

// xzDictionary decodes the dictionary size of LZMA2's properties, 5.3.1.
func xzDictionary(bits byte) uint64 {
	if bits == 40 {
		return 1<<32 - 1
	}
	return (2 | uint64(bits)&1) << (bits/2 + 11)
}

// maxWindow bounds the window of a compressed file, in bytes, and so the memory for unpacking it:
// what xz -9 and zstd --long (27) need.
const maxWindow = 128 << 20
