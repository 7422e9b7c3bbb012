package transcript_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestKimiFiles: pictures that lie beside the log are read from there, and no file that is not one of them.
func TestKimiFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "blobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name, data string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hash := func(of string) string {
		sum := sha256.Sum256([]byte(of))
		return hex.EncodeToString(sum[:])
	}
	put("blobs/"+hash("a"), "\x89PN")
	put("secret", "secret")
	if err := os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "blobs", hash("link"))); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ what, name, want string }{
		{"there", hash("a"), `media image image/png name="" url="" data="iVBO" text=""`},
		{"not there", hash("b"), `text "[image missing]"`},
		{"a link", hash("link"), `text "[image missing]"`},
		{"another file", "../secret", `text "[image missing]"`},
	} {
		put("wire.jsonl", fmt.Sprintf(`{"type":"metadata","protocol_version":"1.5"}
{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image_url","imageUrl":{"url":"blobref:image/png;%s"}}],"origin":{"kind":"user"}}}
`, c.name))
		f, err := transcript.Open(filepath.Join(dir, "wire.jsonl"), nil)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		layoutOne(&b, f.Transcripts[0], "")
		if told := len(f.Report.Warnings) > 0; !strings.Contains(b.String(), c.want) || told != (c.what != "there") {
			t.Errorf("%s:\n%s%swant %s", c.what, b.String(), warnings(f), c.want)
		}
	}
}

// TestFilesNamedOften: a file that a session names many times does not fill the memory.
func TestFilesNamedOften(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, `{"type":"session.binary_asset","data":{"assetId":"sha256:1","mimeType":"image/png","data":%q},"id":"e0","timestamp":"2026-11-20T10:00:02Z"}`+"\n", strings.Repeat("iVBO", 1<<22))
	for i := range 40 {
		fmt.Fprintf(&b, `{"type":"user.message","data":{"content":"Look.","attachments":[{"type":"blob","assetId":"sha256:1","mimeType":"image/png"}]},"id":"e%d","timestamp":"2026-11-20T10:00:03Z"}`+"\n", i+1)
	}
	f, err := transcript.Read(strings.NewReader(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	layoutOne(&shown, f.Transcripts[0], "")
	if n := strings.Count(shown.String(), "[image missing]"); n != 40-8 || len(f.Report.Warnings) != n {
		t.Errorf("%d of 40 pictures are missing, want 32; %d warnings", n, len(f.Report.Warnings))
	}
}
