package media_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestDataURL(t *testing.T) {
	for url, want := range map[string][2]string{
		"data:image/png;base64,AAAA":            {"image/png", "AAAA"},
		"data:text/plain;charset=u;base64,QQ==": {"text/plain", "QQ=="},
		"data:;base64,AA":                       {"", "AA"},
		"data:image/png;base64,":                {},
		"data:text/plain,hello":                 {},
		"https://example.com/a.png":             {},
	} {
		mime, data, ok := media.ParseDataURL(url)
		if got := [2]string{mime, data}; got != want || ok != (want[1] != "") {
			t.Errorf("%s: %q, %t", url, got, ok)
		}
	}
	if got := media.DataURL("image/png", "AAAA"); got != "data:image/png;base64,AAAA" {
		t.Error(got)
	}
}

func TestClassOf(t *testing.T) {
	for mime, want := range map[string]thread.MediaType{
		"image": thread.Image, "image/png": thread.Image, "audio/wav": thread.Audio, "video/mp4": thread.Video,
		"application/pdf": thread.Document, "text/plain": thread.Document, "text": thread.File, "": thread.File, "application/zip": thread.File,
	} {
		if got := media.ClassOf(mime); got != want {
			t.Errorf("%q: %s", mime, got)
		}
	}
}

func TestPlaceholder(t *testing.T) {
	for want, m := range map[string]thread.Media{
		"words":                           {Type: thread.Document, Text: "words", Name: "a.txt"},
		"[document: a.txt]":               {Type: thread.Document, Text: " \n", Name: "a.txt"},
		"[image: image/png, 3 bytes]":     {Type: thread.Image, MIME: "image/png", Data: "AAAA"},
		"[file: a.bin, https://x.test/a]": {Type: thread.File, Name: "a.bin", URL: "https://x.test/a"},
		"[image: not available]":          {Type: thread.Image, URL: "data:image/png;base64,AAAA"},
	} {
		if got := media.Placeholder(m); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
