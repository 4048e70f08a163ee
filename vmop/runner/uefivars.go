package runner

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

type uefiVars struct {
	// fourMiB reports whether the variables belong to the 4 MiB flash layout.
	fourMiB bool
	// enrolled reports whether there is a platform key: without one, the firmware does not enforce
	// Secure Boot.
	enrolled bool
}

const (
	// flash2M is the size of the variables in the 2 MiB flash layout, in bytes.
	flash2M = 128 << 10
	// code2M is the maximum size of the code in the 2 MiB flash layout, in bytes.
	code2M = 2 << 20
	// maxVars bounds the bytes read; the 4 MiB layout has 528 KiB.
	maxVars = 8 << 20
)

// GUIDs as stored, from EDK2's MdeModulePkg.
var (
	// gEfiSystemNvDataFvGuid: the volume has variables.
	guidNVData = []byte{0x8d, 0x2b, 0xf1, 0xff, 0x96, 0x76, 0x8b, 0x4c, 0xa9, 0x85, 0x27, 0x47, 0x07, 0x5b, 0x4f, 0x50}
	// gEfiAuthenticatedVariableGuid: they are in the format with authentication.
	guidAuthenticated = []byte{0x78, 0x2c, 0xf3, 0xaa, 0x7b, 0x94, 0x9a, 0x43, 0xa1, 0x80, 0x2e, 0x14, 0x4e, 0xc3, 0x77, 0x92}
	// gEfiGlobalVariableGuid: the specification's own variables.
	guidGlobal = []byte{0x61, 0xdf, 0xe4, 0x8b, 0xca, 0x93, 0xd2, 0x11, 0xaa, 0x0d, 0x00, 0xe0, 0x98, 0x03, 0x2b, 0x8c}
)

// parseUEFIVars parses a file of variables: a firmware volume with the variables and, in its second
// half, room for a copy of the first half while that is rewritten. The firmware would silently
// replace anything else by an empty volume.
func parseUEFIVars(data []byte) (uefiVars, error) {
	var none uefiVars
	size := uint64(len(data))
	if size == 0 {
		return none, errors.New("the file is empty")
	}
	spare := data[size/2:]
	volume := data
	if !isVolume(data) {
		if !isVolume(spare) {
			return none, errors.New("it does not hold UEFI variables")
		}
		volume = spare // the firmware was stopped while it rewrote the first half
	}
	if length := binary.LittleEndian.Uint64(volume[32:]); length != size {
		return none, fmt.Errorf("it has %d bytes of %d", size, length)
	}
	return uefiVars{fourMiB: size > flash2M, enrolled: hasPlatformKey(volume)}, nil
}

// isVolume checks the header of a firmware volume of variables (PI specification,
// EFI_FIRMWARE_VOLUME_HEADER).
func isVolume(data []byte) bool {
	return len(data) >= 72 && bytes.Equal(data[16:32], guidNVData) && string(data[40:44]) == "_FVH"
}

// hasPlatformKey reports whether the variable PK exists. A malformed list has none.
func hasPlatformKey(volume []byte) bool {
	const (
		storeHeader    = 28     // VARIABLE_STORE_HEADER
		variableHeader = 60     // AUTHENTICATED_VARIABLE_HEADER
		startID        = 0x55aa // of each variable
		added          = 0x3f   // states: valid,
		moving         = 0x3e   // and valid until its successor is
	)
	name := []byte{'P', 0, 'K', 0, 0, 0}
	start := uint64(binary.LittleEndian.Uint16(volume[48:]))
	if start+storeHeader > uint64(len(volume)) || !bytes.Equal(volume[start:start+16], guidAuthenticated) {
		return false
	}
	for at := start + storeHeader; at+variableHeader <= uint64(len(volume)); {
		v := volume[at:]
		if binary.LittleEndian.Uint16(v) != startID {
			return false
		}
		nameSize, dataSize := uint64(binary.LittleEndian.Uint32(v[36:])), uint64(binary.LittleEndian.Uint32(v[40:]))
		end := variableHeader + nameSize + dataSize
		if end > uint64(len(v)) {
			return false
		}
		valid := v[2] == added || v[2] == moving
		if valid && dataSize > 0 && bytes.Equal(v[44:60], guidGlobal) && bytes.Equal(v[variableHeader:variableHeader+nameSize], name) {
			return true
		}
		at += (end + 3) &^ 3
	}
	return false
}

func readUEFIVars(path string) (uefiVars, error) {
	info, err := os.Stat(path)
	if err != nil {
		return uefiVars{}, err
	}
	if !info.Mode().IsRegular() { // opening a FIFO would block
		return uefiVars{}, fmt.Errorf("it is no file: %s", info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return uefiVars{}, err
	}
	defer f.Close()
	return readVars(f)
}

func readVars(f *os.File) (uefiVars, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, maxVars+1))
	if err != nil {
		return uefiVars{}, err
	}
	if len(data) > maxVars {
		return uefiVars{}, fmt.Errorf("it has more than %d bytes, more than any UEFI variables", maxVars)
	}
	return parseUEFIVars(data)
}

// checkTemplate refuses a template of variables that does not belong to the code. Secure Boot
// without keys would enforce nothing.
func checkTemplate(template, code string, secure bool) error {
	vars, err := readUEFIVars(template)
	if err != nil {
		return fmt.Errorf("the template %s cannot be a machine's UEFI variables: %w", template, err)
	}
	info, err := os.Stat(code)
	if err != nil {
		return err
	}
	if vars.fourMiB != (info.Size() > code2M) {
		return fmt.Errorf("the template %s and the code %s have different flash layouts", template, code)
	}
	if secure && !vars.enrolled {
		return fmt.Errorf("the template %s has no platform key: with it, Secure Boot would enforce nothing; variables with enrolled keys are needed (Debian: OVMF_VARS_4M.ms.fd of the package ovmf)", template)
	}
	return nil
}
