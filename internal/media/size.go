package media

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// DecodePrefix decodes about n bytes from the start of base64 data, padded or not. It stops at
// invalid data.
func DecodePrefix(data string, n int) []byte {
	if most := (n + 2) / 3 * 4; len(data) > most {
		data = data[:most]
	}
	buf := make([]byte, base64.RawStdEncoding.DecodedLen(len(data)))
	k, _ := base64.RawStdEncoding.Decode(buf, []byte(strings.TrimRight(data, "=")))
	return buf[:k]
}

// headerBytes is enough for the headers of PNG, GIF and WebP.
const headerBytes = 48

// Size reads width and height from the header of a PNG, JPEG, GIF or WebP image in base64.
func Size(data string) (w, h int, ok bool) {
	b := DecodePrefix(data, headerBytes)
	switch {
	case len(b) >= 24 && string(b[:8]) == "\x89PNG\r\n\x1a\n" && string(b[12:16]) == "IHDR":
		w, h = int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))
	case len(b) >= 10 && (string(b[:6]) == "GIF87a" || string(b[:6]) == "GIF89a"):
		w, h = int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
	case len(b) >= 30 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		w, h = webpSize(b)
	case len(b) >= 3 && string(b[:3]) == "\xff\xd8\xff":
		// The size is behind the metadata, which is seldom longer than this.
		for _, n := range [...]int{4 << 10, 64 << 10, len(data)} {
			if w, h = jpegSize(DecodePrefix(data, n)); w > 0 {
				break
			}
		}
	}
	// A header with a million pixels a side is broken, and must not overflow a formula.
	const most = 1 << 20
	return w, h, w > 0 && h > 0 && w < most && h < most
}

func webpSize(b []byte) (w, h int) {
	switch string(b[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(b[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(b[28:]) & 0x3fff)
	case "VP8L":
		bits := binary.LittleEndian.Uint32(b[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X":
		return int(binary.LittleEndian.Uint32(b[24:])&0xffffff) + 1, int(binary.LittleEndian.Uint32(b[26:])>>8) + 1
	}
	return 0, 0
}

// jpegSize skips segments up to the frame header.
func jpegSize(b []byte) (w, h int) {
	for i := 2; i+9 <= len(b); {
		if b[i] != 0xff {
			return 0, 0
		}
		kind := b[i+1]
		switch {
		case kind == 0xff: // fill byte
			i++
			continue
		case kind == 0x01 || kind >= 0xd0 && kind <= 0xd8: // no length
			i += 2
			continue
		case kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc:
			return int(binary.BigEndian.Uint16(b[i+7:])), int(binary.BigEndian.Uint16(b[i+5:]))
		case kind == 0xda || kind == 0xd9: // data, or the end
			return 0, 0
		}
		i += 2 + int(binary.BigEndian.Uint16(b[i+2:]))
	}
	return 0, 0
}
