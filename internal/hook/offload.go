package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
)

const (
	// DefaultOffload is the size above which a text goes to a file, in bytes: about 10,000
	// tokens, more than agents leave of their shell's output.
	DefaultOffload = 40_000
	// headBytes and tailBytes of it stay. Commands report their result at the end.
	headBytes, tailBytes = 4_000, 2_000
	// outputLifetime is how long the files are kept.
	outputLifetime = 30 * 24 * time.Hour
)

// Offload writes each text of a tool's response that is longer than most bytes into a file
// below folder, and returns the response with the beginning, a pointer and the end of these
// texts. It returns "" if no text is that long, or if it cannot be replaced: what is no text,
// such as a picture, and what the model is not shown stay as they are. On an error the
// response must stay as it is.
func Offload(c Call, folder string, most int, now time.Time) (string, error) {
	if c.Response == "" || most <= 0 {
		return "", nil
	}
	var out strings.Builder
	written := 0 // of the response
	err := walkTexts(shown(c), func(v gjson.Result) error {
		if len(v.Str) <= max(most, 2*(headBytes+tailBytes)) {
			return nil
		}
		short, err := offloadText(c.Session, v.Str, folder, now)
		if err != nil {
			return err
		}
		out.WriteString(c.Response[written:v.Index])
		out.WriteString(rawjson.Quote(short))
		written = v.Index + len(v.Raw)
		return nil
	})
	if err != nil || written == 0 {
		return "", err
	}
	out.WriteString(c.Response[written:])
	return out.String(), nil
}

// shown is the part of a response that the model reads; it does not exist if that cannot be
// replaced.
func shown(c Call) gjson.Result {
	v := gjson.Parse(c.Response)
	if c.Event == AfterTool { // one text takes the place of all parts
		if v = v.Get("llmContent"); !isText(v) {
			return gjson.Result{}
		}
		return v
	}
	switch toolclass.ClassOf(c.Tool) {
	case toolclass.Edit, toolclass.Write:
		if !strings.HasPrefix(c.Tool, "mcp__") { // it holds the file, and the model reads that it was changed
			return gjson.Result{}
		}
	}
	return v
}

// isText reports whether Gemini CLI's content for the model has only texts.
func isText(v gjson.Result) bool {
	if v.IsArray() {
		return !slices.ContainsFunc(v.Array(), func(part gjson.Result) bool { return !isText(part) })
	}
	return v.Type == gjson.String || v.IsObject() && v.Get("text").Type == gjson.String
}

// walkTexts calls f for each text in a value, in order, until f fails.
func walkTexts(v gjson.Result, f func(gjson.Result) error) (err error) {
	switch {
	case v.Type == gjson.String && !isDataURL(v.Str):
		return f(v)
	case v.IsObject() && !isMedia(v), v.IsArray():
		encoded := v.IsObject() && hasMediaType(v)
		v.ForEach(func(key, value gjson.Result) bool {
			if !encodedFields[key.Str] && (!encoded || key.Str != "data") {
				err = walkTexts(value, f)
			}
			return err == nil
		})
	}
	return err
}

// encodedFields are the members that hold bytes as base64, in Claude Code's results and in MCP's.
var encodedFields = map[string]bool{"base64": true, "blob": true, "image_data": true}

func isMedia(v gjson.Result) bool {
	switch v.Get("type").String() {
	case "image", "audio", "video", "document", "pdf", "base64":
		return true
	}
	return v.Get("isImage").Bool() // output of a command that prints one
}

// hasMediaType reports whether an object says of which type its data is.
func hasMediaType(v gjson.Result) bool {
	return v.Get("mimeType").Exists() || v.Get("mime_type").Exists() || v.Get("media_type").Exists()
}

func isDataURL(s string) bool {
	return strings.HasPrefix(s, "data:") && strings.Contains(s[:min(len(s), 200)], ";base64,")
}

// offloadText writes a text to a file and returns what replaces it.
func offloadText(session, text, folder string, now time.Time) (string, error) {
	sum := sha256.Sum256([]byte(text))
	dir := filepath.Join(folder, folderName(session))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, hex.EncodeToString(sum[:6])+".txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	// A file that was there leaves the folder's time as it was, and the folder would be removed.
	if err := os.Chtimes(dir, now, now); err != nil {
		return "", err
	}
	head := text[:clip.Boundary(text, headBytes)]
	tail := text[clip.Boundary(text, len(text)-tailBytes):]
	lines := strings.Count(text, "\n") + 1
	return fmt.Sprintf("%s\n\n[palimpsest: %d bytes are left out here. The whole output, %d lines, is in the file %s: search it, or read the lines that you need.]\n\n%s",
		head, len(text)-len(head)-len(tail), lines, path, tail), nil
}

// folderName makes a session's id a valid name of a folder.
func folderName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	if name = name[:min(len(name), 80)]; name == "" {
		return "session"
	}
	return name
}

// RemoveOld removes the files of sessions for which nothing was written in thirty days. It goes
// on after a folder that it cannot remove.
func RemoveOld(folder string, now time.Time) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		info, failed := e.Info()
		if failed == nil && e.IsDir() && now.Sub(info.ModTime()) > outputLifetime {
			failed = os.RemoveAll(filepath.Join(folder, e.Name()))
		}
		if !errors.Is(failed, fs.ErrNotExist) { // another hook was faster
			err = errors.Join(err, failed)
		}
	}
	return err
}
