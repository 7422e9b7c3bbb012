package token

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func encoded(t testing.TB, kind string, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h)))
	case "jpeg":
		err = jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, w, h)), nil)
	case "gif":
		err = gif.Encode(&b, image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White}), nil)
	case "webp lossy":
		b.WriteString("RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a")
		err = binary.Write(&b, binary.LittleEndian, [2]uint16{uint16(w), uint16(h) | 1<<14}) // with a scale bit
	case "webp lossless":
		b.WriteString("RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f")
		err = binary.Write(&b, binary.LittleEndian, uint32(w-1)|uint32(h-1)<<14)
		b.WriteString("\x00\x00\x00\x00\x00")
	case "webp extended":
		b.WriteString("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00")
		b.Write([]byte{byte(w - 1), byte((w - 1) >> 8), byte((w - 1) >> 16), byte(h - 1), byte((h - 1) >> 8), byte((h - 1) >> 16)})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var imageKinds = []string{"png", "jpeg", "gif", "webp lossy", "webp lossless", "webp extended"}

func TestImageSize(t *testing.T) {
	for _, kind := range imageKinds {
		for _, size := range [][2]int{{1, 1}, {640, 480}, {1568, 3}, {3000, 2000}} {
			b := encoded(t, kind, size[0], size[1])
			for name, data := range map[string]string{"padded": base64.StdEncoding.EncodeToString(b), "raw": base64.RawStdEncoding.EncodeToString(b)} {
				w, h, ok := media.Size(data)
				if !ok || w != size[0] || h != size[1] {
					t.Errorf("%s, %s: read %d x %d (%v), want %v", kind, name, w, h, ok, size)
				}
			}
		}
	}
	// A photograph: metadata before the frame, larger than what is read first.
	b := encoded(t, "jpeg", 320, 200)
	exif := append([]byte{0xff, 0xe1, 0xff, 0xff}, make([]byte, 0xffff-2)...)
	long := append(append(append([]byte{}, b[:2]...), append(exif, exif...)...), b[2:]...)
	if w, h, ok := media.Size(base64.StdEncoding.EncodeToString(long)); !ok || w != 320 || h != 200 {
		t.Errorf("behind long metadata: %d x %d (%v)", w, h, ok)
	}
	for _, bad := range []string{"", "x", "!!!!", "iVBORw0KGgo=", base64.StdEncoding.EncodeToString([]byte("\xff\xd8\xff\xe0\x00\x00")), base64.StdEncoding.EncodeToString(encoded(t, "webp extended", 1<<23, 1))} {
		if w, h, ok := media.Size(bad); ok {
			t.Errorf("%q has a size: %d x %d", bad, w, h)
		}
	}
}

func FuzzImageSize(f *testing.F) {
	for _, kind := range imageKinds {
		f.Add(encoded(f, kind, 20, 10))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		data := base64.StdEncoding.EncodeToString(b)
		w, h, ok := media.Size(data)
		if ok && (w <= 0 || h <= 0) {
			t.Fatalf("size %d x %d", w, h)
		}
		for name, f := range imageFormulas {
			n := f.unknown
			if ok {
				n = f.size(w, h, "")
			}
			if n <= 0 {
				t.Fatalf("%s: an image of %d x %d costs %d tokens", name, w, h, n)
			}
		}
		if pdfPages(data) < 0 || pdfPages(string(b)) < 0 {
			t.Fatal("a negative number of pages")
		}
		media.Size(string(b))
	})
}

func TestImageFormulas(t *testing.T) {
	for _, k := range []struct {
		formula string
		w, h    int
		detail  string
		want    int
	}{
		// 28-pixel patches, as counted by the provider for these sizes.
		{"claude-1568", 256, 256, "", 100},
		{"claude-1568", 1024, 1024, "", 37 * 37},
		{"claude-1568", 1280, 720, "", 46 * 26},
		{"claude-2576", 1920, 1080, "", 69 * 39},
		// Larger ones are scaled down to the limits.
		{"claude-1568", 3840, 2160, "", 1560},
		{"claude-1568", 8000, 100, "", 56},
		{"claude-2576", 8000, 8000, "", 4761},
		// 85 and 170 for each tile of 512 pixels after scaling to 768.
		{"tiles-85-170", 1024, 1024, "high", 765},
		{"tiles-85-170", 2048, 4096, "high", 1105},
		{"tiles-85-170", 4096, 8192, "low", 85},
		{"tiles-85-170", 512, 512, "", 255},
		{"tiles-70-140", 1024, 1024, "", 70 + 4*140},
		// 32-pixel patches with a factor.
		{"patches-10000-x1.2", 1024, 1024, "", 1229},
		{"patches-10000-x1.2", 1920, 1080, "", 2448},
		{"patches-10000-x1.2", 256, 256, "", 77},
		{"patches-1536-x1.62", 1024, 1024, "", 1659},
		{"patches-10000-x1.2", 4000, 4000, "low", 308},
		{"gemini-768", 384, 384, "", 258},
		{"gemini-768", 1536, 768, "", 516},
		{"gemini-1120", 4000, 3000, "", 1120},
		{"gemini-1120", 4000, 3000, "MEDIA_RESOLUTION_LOW", 280},
	} {
		got := imageFormulas[k.formula].size(k.w, k.h, k.detail)
		if got != k.want {
			t.Errorf("%s: %d x %d %s costs %d tokens, want %d", k.formula, k.w, k.h, k.detail, got, k.want)
		}
	}
}

// Twice the bytes are not twice the tokens.
func TestMediaIsNotCountedByLength(t *testing.T) {
	c := counter(t, "claude")
	data := base64.StdEncoding.EncodeToString(encoded(t, "png", 560, 280))
	count := func(m thread.Media) int {
		return c.Message(&thread.Message{Parts: []thread.Part{m}}) - c.Message(&thread.Message{})
	}
	for _, tail := range []string{"", strings.Repeat("QUJD", 100_000)} {
		if got := count(thread.Media{Type: thread.Image, Data: data + tail}); got != 20*10 {
			t.Errorf("an image of 20 x 10 patches in %d bytes costs %d tokens", len(data+tail), got)
		}
	}
	if got := count(thread.Media{Type: thread.Image, URL: "https://example.com/a.png"}); got != 1568 {
		t.Errorf("an image of unknown size costs %d tokens", got)
	}
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n<< /Type /Pages /Count 2 >>\n<< /Type /Page >>\n<</Type/Page/Parent 1 0 R>>\n"))
	if got := count(thread.Media{Type: thread.Document, MIME: "application/pdf", Data: pdf}); got != 2*pageTokens {
		t.Errorf("a document of two pages costs %d tokens", got)
	}
	for _, m := range []thread.Media{
		{Type: thread.File, Data: pdf},
		{Type: thread.File, MIME: "application/pdf", URL: "data:application/pdf;base64," + pdf},
	} {
		if got := count(m); got != 2*pageTokens {
			t.Errorf("a file that is a document of two pages costs %d tokens", got)
		}
	}
	if got := count(thread.Media{Type: thread.Image, URL: "data:image/png;base64," + data}); got != 20*10 {
		t.Errorf("an image in a data URL costs %d tokens", got)
	}
	if got := count(thread.Media{Type: thread.Document, FileID: "file_1"}); got != pagesUnknown*pageTokens {
		t.Errorf("a document of unknown length costs %d tokens", got)
	}
	note := "A plain note of a few words."
	for _, m := range []thread.Media{
		{Type: thread.Document, MIME: "text/plain", Data: base64.StdEncoding.EncodeToString([]byte(note))},
		{Type: thread.Document, Text: note},
	} {
		if got, want := count(m), c.Text(note); got != want {
			t.Errorf("a document of plain text costs %d tokens, its text %d", got, want)
		}
	}
	for _, kind := range []thread.MediaType{thread.Audio, thread.Video, thread.File} {
		if count(thread.Media{Type: kind, Data: data}) <= 0 {
			t.Errorf("%s costs nothing", kind)
		}
	}
}
