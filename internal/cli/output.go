package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/internal/glyph"
)

// WriteOutput writes a file whole or not at all: an existing file stays until the new one
// is complete. A new one is readable for its owner only. "" and "-" are standard output.
func WriteOutput(path string, data []byte, stdout io.Writer) error {
	return fillOutput(path, stdout, writeBytes(data))
}

// fillOutput is WriteOutput for what is written piece by piece.
func fillOutput(path string, stdout io.Writer, fill func(io.Writer) error) error {
	if path == "" || path == "-" {
		if !isTerminalFile(underlyingWriter(stdout)) {
			return fill(stdout)
		}
		shown := transform.NewWriter(stdout, onTerminal)
		return errors.Join(fill(shown), shown.Close())
	}
	to, err := findDestination(path)
	if err != nil {
		return err
	}
	if to.inPlace {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(fill(f), f.Close())
	}
	if err := durable.Replace(to.path, to.mode, fill); err != nil {
		return fmt.Errorf("cannot write %s, no part of it was written: %w", path, unnamed(err))
	}
	return nil
}

// onTerminal shows what would steer a terminal, or hide text from its reader, as a sign: text of a conversation is
// no command.
var onTerminal = runes.Map(func(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || !glyph.Hidden(r):
		return r
	case r < ' ':
		return '␀' + r
	}
	return utf8.RuneError
})

// unnamed is the reason for an error about a file, without the name of the temporary file.
func unnamed(err error) error {
	if named, ok := errors.AsType[*fs.PathError](err); ok {
		return named.Err
	}
	return err
}

// destination is a file that will be written.
type destination struct {
	path    string // where a link leads
	mode    fs.FileMode
	inPlace bool // a device or a pipe, which is not replaced
}

// findDestination returns an error if a file cannot be written, as far as can be told before
// it is. A file that exists keeps its mode.
func findDestination(path string) (destination, error) {
	to := destination{path: path, mode: 0o600}
	if info, err := os.Stat(path); err == nil {
		switch {
		case info.IsDir():
			return to, fmt.Errorf("cannot write %s: it is a directory; name a file in it", path)
		case !info.Mode().IsRegular():
			to.inPlace = true
			return to, nil
		case info.Mode().Perm()&0o200 == 0:
			return to, fmt.Errorf("cannot write %s: it is read-only, and stays as it was", path)
		}
		to.mode = info.Mode().Perm()
		if target, err := filepath.EvalSymlinks(path); err == nil {
			to.path = target
		}
	}
	// Only making a file tells whether one can be made.
	temp, err := durable.Beside(to.path)
	if err == nil {
		err = errors.Join(temp.Close(), os.Remove(temp.Name()))
	}
	if err != nil {
		return to, fmt.Errorf("cannot write %s, nothing was changed: %w", path, unnamed(err))
	}
	return to, nil
}

// writeBytes returns a function for durable.Replace that writes data.
func writeBytes(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// checkOutputs refuses output files that CheckDistinct refuses or that cannot be written.
func checkOutputs(read []string, outs ...string) error {
	if err := CheckDistinct(read, outs...); err != nil {
		return err
	}
	for _, out := range outs {
		if out == "" || out == "-" {
			continue
		}
		if _, err := findDestination(out); err != nil {
			return err
		}
	}
	return nil
}

// checkNew refuses the name of a file that exists; "" names none.
func checkNew(path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot write %s: the file exists already and is never overwritten; name another file", path)
	}
	return nil
}

// CheckDistinct refuses output files that would overwrite what is read or each other. What is
// read may be the id of a session.
func CheckDistinct(read []string, outs ...string) error {
	used := mapSlice(read, func(name string) string {
		if s, err := resolveSession(name); err == nil && s != nil {
			return s.Path
		}
		return name
	})
	for _, out := range outs {
		if out == "" || out == "-" {
			continue
		}
		if slices.ContainsFunc(used, func(other string) bool { return sameFile(other, out) }) {
			return fmt.Errorf("%w: %s is named twice: an output may not replace the input, the store or another output", errUsage, out)
		}
		used = append(used, out)
	}
	return nil
}

func shellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r))
	}) {
		return s
	}
	if printable(s) != s { // the form in which bash and zsh take escapes
		return "$'" + printable(strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\t", `\t`).Replace(s)) + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func sameFile(a, b string) bool {
	if a == "-" || a == "" {
		return false
	}
	one, err := os.Stat(a)
	two, err2 := os.Stat(b)
	if err != nil || err2 != nil {
		return absolute(a) == absolute(b)
	}
	return one.Mode().IsRegular() && os.SameFile(one, two)
}

// absolute is the path from the root, or the path itself if the current directory is gone.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return filepath.Clean(path)
}

// stickyErrorWriter remembers the first error of standard output, so that reports need not
// check each line.
type stickyErrorWriter struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (r *stickyErrorWriter) Write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	r.err = cmp.Or(r.err, err)
	return n, err
}

func underlyingWriter(w io.Writer) io.Writer {
	if r, ok := w.(*stickyErrorWriter); ok {
		return r.w
	}
	return w
}

// isTerminalFile reports whether a reader or writer is the file of a terminal; other devices,
// such as the null device, are none.
func isTerminalFile(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && isatty.IsTerminal(f.Fd())
}
