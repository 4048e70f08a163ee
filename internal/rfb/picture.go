package rfb

import (
	"encoding/binary"
	"fmt"
	"image"
	"io"
)

// The messages of the protocol for a picture.
const (
	setPixelFormat = 0
	setEncodings   = 2
	requestUpdate  = 3

	sentUpdate   = 0
	sentBell     = 2
	sentCutText  = 3
	encodingRaw  = 0
	bytesOfPixel = 4
)

// Picture requests the whole screen and waits until all of it has arrived. The connection must have
// done its [Handshake].
func Picture(conn io.ReadWriter, s Screen) (*image.RGBA, error) {
	// Little endian, so that the bytes of a pixel are those of [image.RGBA].
	ask := []byte{
		setPixelFormat, 0, 0, 0,
		8 * bytesOfPixel, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0,
		setEncodings, 0, 0, 1, 0, 0, 0, encodingRaw,
		requestUpdate, 0, 0, 0, 0, 0,
	}
	ask = binary.BigEndian.AppendUint16(ask, uint16(s.Width))
	ask = binary.BigEndian.AppendUint16(ask, uint16(s.Height))
	if _, err := conn.Write(ask); err != nil {
		return nil, fmt.Errorf("ask for the screen: %w", err)
	}
	img := image.NewRGBA(image.Rect(0, 0, s.Width, s.Height))
	for missing := s.Width * s.Height; missing > 0; {
		got, err := update(conn, img)
		if err != nil {
			return nil, fmt.Errorf("%d pixels of the screen are missing: %w", missing, err)
		}
		missing -= got
	}
	return img, nil
}

func update(r io.Reader, img *image.RGBA) (int, error) {
	var kind [1]byte
	if _, err := io.ReadFull(r, kind[:]); err != nil {
		return 0, err
	}
	switch kind[0] {
	case sentBell:
		return 0, nil
	case sentCutText:
		if _, err := io.CopyN(io.Discard, r, 3); err != nil {
			return 0, err
		}
		_, err := text(r)
		return 0, err
	case sentUpdate:
	default:
		return 0, fmt.Errorf("an unknown message %d", kind[0])
	}
	var head struct {
		_          byte
		Rectangles uint16
	}
	if err := binary.Read(r, binary.BigEndian, &head); err != nil {
		return 0, err
	}
	pixels := 0
	for range head.Rectangles {
		var at struct {
			X, Y, Width, Height uint16
			Encoding            int32
		}
		if err := binary.Read(r, binary.BigEndian, &at); err != nil {
			return 0, err
		}
		area := image.Rect(int(at.X), int(at.Y), int(at.X)+int(at.Width), int(at.Y)+int(at.Height))
		if at.Encoding != encodingRaw || !area.In(img.Rect) {
			return 0, fmt.Errorf("a rectangle %v of encoding %d on a screen of %v", area, at.Encoding, img.Rect.Max)
		}
		for y := area.Min.Y; y < area.Max.Y; y++ {
			row := img.Pix[img.PixOffset(area.Min.X, y):][:bytesOfPixel*area.Dx()]
			if _, err := io.ReadFull(r, row); err != nil {
				return 0, err
			}
			for i := bytesOfPixel - 1; i < len(row); i += bytesOfPixel {
				row[i] = 0xff // the protocol has no transparency
			}
		}
		pixels += area.Dx() * area.Dy()
	}
	return pixels, nil
}

// Colors returns the number of colors of a picture: more than one if something is displayed.
func Colors(img *image.RGBA) int {
	seen := map[[bytesOfPixel]byte]bool{}
	for i := 0; i < len(img.Pix); i += bytesOfPixel {
		seen[[bytesOfPixel]byte(img.Pix[i:])] = true
	}
	return len(seen)
}
