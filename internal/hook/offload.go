package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
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
// texts. It returns "" if no text is that long. It also removes folders of sessions that are
// unchanged for thirty days. On an error the response must stay as it is.
func Offload(c Call, folder string, most int, now time.Time) (string, error) {
	if c.Response == "" || most <= 0 {
		return "", nil
	}
	var out strings.Builder
	written := 0 // of the response
	err := walkStrings(gjson.Parse(c.Response), func(v gjson.Result) error {
		if len(v.Str) <= max(most, 2*(headBytes+tailBytes)) {
			return nil
		}
		short, err := offloadText(c.Session, v.Str, folder)
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
	return out.String(), removeOld(folder, now)
}

// walkStrings calls f for each text in a value, in order, until f fails.
func walkStrings(v gjson.Result, f func(gjson.Result) error) (err error) {
	switch {
	case v.Type == gjson.String:
		return f(v)
	case v.IsObject() || v.IsArray():
		v.ForEach(func(_, value gjson.Result) bool {
			err = walkStrings(value, f)
			return err == nil
		})
	}
	return err
}

// offloadText writes a text to a file and returns what replaces it.
func offloadText(session, text, folder string) (string, error) {
	sum := sha256.Sum256([]byte(text))
	dir := filepath.Join(folder, folderName(session))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, hex.EncodeToString(sum[:6])+".txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
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

// removeOld removes the folders of old sessions.
func removeOld(folder string, now time.Time) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && now.Sub(info.ModTime()) > outputLifetime {
			err = os.RemoveAll(filepath.Join(folder, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
