package tinyguest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// kernelKey is the cache key of buildKernel's result.
func kernelKey(s source) string {
	return key(append([]string{"kernel 1", s.id}, wantedModules...)...)
}

const dirModules = "modules"

func buildKernel(ctx context.Context, dir string, s source, progress io.Writer) error {
	root := s.dir
	if root == "" {
		root = filepath.Join(dir, "root")
		if err := os.Mkdir(root, 0o700); err != nil {
			return err
		}
		if err := s.fetch(ctx, root, progress); err != nil {
			return err
		}
	}
	k, err := findKernel(root)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "building a guest from %s\n", filepath.Base(k.image))
	image, err := os.ReadFile(k.image)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, fileBzImage), image, 0o600); err != nil {
		return err
	}
	switch vmlinux, err := extractVmlinux(ctx, image); {
	case err == nil:
		if err := os.WriteFile(filepath.Join(dir, fileKernel), vmlinux, 0o600); err != nil {
			return err
		}
	case ctx.Err() != nil:
		return err
	default:
		// The guest then unpacks it itself, which costs it half a second.
		fmt.Fprintf(progress, "the kernel stays packed: %v\n", err)
	}
	if err := copyModules(ctx, filepath.Join(dir, dirModules), k.modules); err != nil {
		return fmt.Errorf("modules: %w", err)
	}
	if s.dir == "" {
		return os.RemoveAll(root)
	}
	return nil
}

// unpackers are the programs for the compression formats of kernels and modules, with their magic
// bytes.
var unpackers = []struct{ magic, program string }{
	{"\x02\x21\x4c\x18", "lz4"},
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"\xfd7zXZ\x00", "xz"},
	{"\x1f\x8b", "gzip"},
}

var errNotPacked = errors.New("format not known")

func unpack(ctx context.Context, data []byte) ([]byte, error) {
	for _, u := range unpackers {
		if !bytes.HasPrefix(data, []byte(u.magic)) {
			continue
		}
		var out, complaint bytes.Buffer
		cmd := exec.CommandContext(ctx, u.program, "-dc")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), &out, &complaint
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", u.program, err, bytes.TrimSpace(complaint.Bytes()))
		}
		return out.Bytes(), nil
	}
	return nil, errNotPacked
}

// extractVmlinux finds the kernel proper in a bzImage. The layout is that of the kernel's
// documentation, "The Linux/x86 Boot Protocol": setup_sects at 0x1f1, the magic HdrS at 0x202,
// payload_offset and payload_length at 0x248.
func extractVmlinux(ctx context.Context, image []byte) ([]byte, error) {
	if len(image) < 0x250 || string(image[0x202:0x206]) != "HdrS" || binary.LittleEndian.Uint16(image[0x206:]) < 0x208 {
		return nil, errors.New("not a bzImage of boot protocol 2.08 or later")
	}
	sectors := uint64(image[0x1f1])
	if sectors == 0 {
		sectors = 4
	}
	start := (sectors+1)*512 + uint64(binary.LittleEndian.Uint32(image[0x248:]))
	end := start + uint64(binary.LittleEndian.Uint32(image[0x24c:]))
	if end > uint64(len(image)) || end-start < 4 {
		return nil, errors.New("bzImage: payload outside the file")
	}
	payload := image[start:end]
	size := binary.LittleEndian.Uint32(payload[len(payload)-4:])
	if !bytes.HasPrefix(payload, []byte("\x1f\x8b")) {
		// gzip ends with the size itself; the kernel's build appends it to the other formats, whose
		// programs take it for garbage.
		payload = payload[:len(payload)-4]
	}
	vmlinux, err := unpack(ctx, payload)
	if err != nil {
		return nil, fmt.Errorf("bzImage: %w", err)
	}
	if uint64(len(vmlinux)) != uint64(size) || !bytes.HasPrefix(vmlinux, []byte("\x7fELF")) {
		return nil, errors.New("bzImage: payload is not the kernel that it promises")
	}
	return vmlinux, nil
}
