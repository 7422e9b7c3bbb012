package transcript

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// input reads the lines of a file. Each is valid JSON in valid UTF-8.
type input struct {
	r       *bufio.Reader
	maxLine int
	report  *Report
	number  int          // lines read so far
	buf     []byte       // the current line; reused for the next
	pending []unreadLine // lines that were put back
	raw     []unreadLine // lines that were read and not checked
	mended  []unreadLine // records of a damaged line, which come next
	keys    []string     // with which the records of the file begin
	ended   bool
	cutOff  bool  // the compressed data ended before its end
	failed  error // found when looking ahead
}

// unreadLine is a line that was put back.
type unreadLine struct {
	line   []byte
	number int
}

// readSize is how much is read at once, in bytes.
const readSize = 1 << 16

func newInput(r io.Reader, maxLine int, report *Report) (*input, error) {
	b, err := unpack(bufio.NewReaderSize(r, readSize), maxLine)
	if err != nil {
		return nil, err
	}
	head, err := b.Peek(readSize)
	if len(head) == 0 {
		if isCorrupt(err) {
			return nil, fmt.Errorf("the compressed data is broken (%v): %w", err, ErrBinary)
		}
		if isTruncated(err) {
			return nil, errNoUnpacked
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		return nil, fmt.Errorf("the file is empty: %w", ErrEmpty)
	}
	if what := describeBinary(head); what != "" {
		return nil, fmt.Errorf("the file looks like %s: %w", what, ErrBinary)
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		b.Discard(3)
	}
	in := &input{r: b, maxLine: maxLine, report: report}
	return in, in.start()
}

// unpack reads what gzip or zstd packed, and other files as they are.
func unpack(b *bufio.Reader, maxLine int) (*bufio.Reader, error) {
	magic, _ := b.Peek(4)
	var unpacked io.Reader
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if isTruncated(err) {
			return nil, errNoUnpacked
		}
		if err != nil {
			return nil, fmt.Errorf("the file begins as gzip and is broken there (%v): %w", err, ErrBinary)
		}
		unpacked = z
	case string(magic) == zstdMagic:
		source := &failingReader{r: b}
		z, err := zstd.NewReader(source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		unpacked = &zstdReader{z, source}
	default:
		return b, nil
	}
	return bufio.NewReaderSize(&unpackedReader{unpacked, int64(maxLine) * maxUnpackedLines}, readSize), nil
}

const (
	zstdMagic = "\x28\xb5\x2f\xfd"
	// maxZstdWindow limits the memory of the decompressor, in bytes. The standard asks for 8 MiB.
	maxZstdWindow = 8 << 20
)

// checkUnpacked refuses a packed file that unpacks to too much, before anything of it is kept. What else
// is wrong is told when it is read.
func checkUnpacked(f *os.File, maxLine int) error {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil // a pipe can be read once
	}
	b := bufio.NewReaderSize(f, readSize)
	r, err := unpack(b, maxLine)
	var lines lineCounter
	if err == nil && r != b {
		_, err = io.Copy(&lines, r)
	}
	if errors.Is(err, errUnpacked) {
		return tooMuch(int(lines), maxLine)
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// tooMuch is the error for packed data that holds too much behind so many lines.
func tooMuch(lines, maxLine int) error {
	return &SyntaxError{Line: lines + 1, Err: fmt.Errorf("over %d bytes: %w", int64(maxLine)*maxUnpackedLines, errUnpacked)}
}

// lineCounter counts the lines that are written to it.
type lineCounter int

func (c *lineCounter) Write(p []byte) (int, error) {
	*c += lineCounter(bytes.Count(p, []byte{'\n'}))
	return len(p), nil
}

// failingReader keeps the error that r ended with.
type failingReader struct {
	r   io.Reader
	err error
}

func (f *failingReader) Read(p []byte) (n int, err error) {
	n, err = f.r.Read(p)
	f.err = err
	return n, err
}

// zstdReader tells damaged data from a source that fails.
type zstdReader struct {
	z      *zstd.Decoder
	source *failingReader
}

func (z *zstdReader) Read(p []byte) (int, error) {
	n, err := z.z.Read(p)
	switch {
	case err == nil || err == io.EOF || isTruncated(err):
	case z.source.err != nil && z.source.err != io.EOF:
		err = z.source.err
	default:
		err = fmt.Errorf("%w: %v", errZstd, err)
	}
	return n, err
}

// errZstd is wrapped by errors about damaged data that zstd packed.
var errZstd = errors.New("zstd")

// describeBinary says what a binary file looks like; "" for text.
func describeBinary(head []byte) string {
	for _, k := range []struct{ magic, name string }{
		{"PK\x03\x04", "a zip archive (unpack it first; an inspect .eval file is one)"},
		{zstdMagic, "zstd inside of packed data (decompress it once)"},
		{"BZh", "bzip2 (decompress it first)"},
		{"\xfd7zXZ", "xz (decompress it first)"},
		{"\x1f\x8b", "gzip inside gzip (decompress it once)"},
		{"SQLite format 3", "an SQLite database"},
		{"%PDF-", "a PDF"},
		{"\x89PNG", "an image"},
		{"\xff\xfe", "UTF-16 (convert it to UTF-8)"},
		{"\xfe\xff", "UTF-16 (convert it to UTF-8)"},
	} {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return k.name
		}
	}
	text := bytes.TrimLeft(head, blanks) // a crash may leave NUL bytes
	json := len(text) > 1 && ((text[0] == '{' || text[0] == '[') && text[1] != 0 || head[0] == 0 && text[0] >= ' ' && bytes.Contains(text, []byte("\n{\"")))
	switch zeros := bytes.Count(head, []byte{0}); {
	case len(head) > 1 && zeros > len(head)/3 && (head[0] == 0) != (head[1] == 0):
		return "UTF-16 (convert it to UTF-8)"
	case zeros > 0 && !json:
		return "binary data (it has NUL bytes)"
	}
	return ""
}

// isTruncated reports whether a compressed stream ended before its end.
func isTruncated(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

// isCorrupt reports whether compressed data is damaged.
func isCorrupt(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrChecksum) || errors.Is(err, errZstd) || errors.As(err, &corrupt)
}

// maxUnpackedLines limits the size of an unpacked file to so many of the longest lines: a small
// file can unpack to a thousand times its size.
const maxUnpackedLines = 8

// unpackedReader reads at most so many unpacked bytes.
type unpackedReader struct {
	r    io.Reader
	left int64
}

func (u *unpackedReader) Read(p []byte) (int, error) {
	if u.left < 0 {
		return 0, errUnpacked
	}
	n, err := u.r.Read(p[:min(int64(len(p)), u.left+1)])
	if u.left -= int64(n); u.left < 0 {
		return n - 1, errUnpacked
	}
	return n, err
}

var errUnpacked = errors.New("the compressed file holds too much; unpack it first")

// readRaw returns the next line that is not blank, unchecked, and its number, or io.EOF. The bytes are
// valid until the next call.
func (in *input) readRaw() ([]byte, int, error) {
	if len(in.raw) > 0 {
		l := in.raw[0]
		in.raw = in.raw[1:]
		return l.line, l.number, nil
	}
	if in.failed != nil {
		return nil, 0, in.failed
	}
	line, err := in.readLine()
	return line, in.number, err
}

// readLine is readRaw without the lines that were read before.
func (in *input) readLine() ([]byte, error) {
	for {
		in.buf = in.buf[:0]
		if in.ended {
			return nil, io.EOF
		}
		for {
			part, err := in.r.ReadSlice('\n')
			if len(in.buf)+len(part) > in.maxLine {
				return nil, &SyntaxError{Line: in.number + 1, Err: fmt.Errorf("over %d bytes: %w", in.maxLine, ErrTooLong)}
			}
			if need := len(in.buf) + len(part); need > cap(in.buf) {
				// Double, but never beyond the limit: a huge line must not leave many
				// outgrown buffers behind.
				in.buf = slices.Grow(in.buf, min(max(2*cap(in.buf), need), max(in.maxLine, need))-len(in.buf))
			}
			in.buf = append(in.buf, part...)
			if err == nil {
				break
			}
			if err == bufio.ErrBufferFull {
				continue
			}
			in.ended = true
			switch {
			case err == io.EOF:
			case isTruncated(err):
				in.cutOff = true
			case errors.Is(err, gzip.ErrHeader):
				in.report.warn(in.number+1, "what follows the compressed data is not gzip and was not read")
			case isCorrupt(err):
				return nil, &SyntaxError{Line: in.number + 1, Err: fmt.Errorf("the compressed data is broken: %w", err)}
			case errors.Is(err, errUnpacked):
				return nil, tooMuch(in.number, in.maxLine)
			default:
				return nil, err
			}
			break
		}
		if len(in.buf) > 0 {
			in.number++
		}
		line := in.trimLine(in.buf)
		if in.cutOff && (len(line) == 0 || rawjson.Valid(line)) {
			in.report.cutOff = &Warning{in.number, packedCutOff + " after this line: what follows, if anything, is missing; all lines up to here were read"}
		}
		if len(line) > 0 {
			return line, nil
		}
	}
}

// What was cut off: the compressed data, of which the end is missing, or the file itself.
const packedCutOff, plainCutOff = "the compressed data is cut off", "the file is cut off"

// errNoUnpacked is the error for compressed data that ends before its first byte of content.
var errNoUnpacked = fmt.Errorf(packedCutOff+" at its beginning, nothing could be read: %w", ErrEmpty)

// whatCutOff says what was cut off if a line or a document ends before its end; "" if it is
// broken otherwise. The error is that of json.Unmarshal.
func (in *input) whatCutOff(err error) string {
	switch syntax, ok := errors.AsType[*json.SyntaxError](err); {
	case in.cutOff:
		return packedCutOff
	case ok && syntax.Error() == endsEarly:
		return plainCutOff
	}
	return ""
}

// endsEarly is the text of the error of package json where a value ends before its end.
const endsEarly = "unexpected end of JSON input"

// sayCutOff says of a last line that cannot be read, because of err, what is missing and what
// was read before it.
func (in *input) sayCutOff(err error, before int) string {
	read := "; the " + clip.Number(before) + " lines before were read"
	if before == 1 {
		read = "; the line before was read"
	}
	switch what := in.whatCutOff(err); what {
	case "":
		return "the last line is not valid JSON and was not read" + read
	case packedCutOff:
		return what + " in this line: it and what follows are missing" + read
	default:
		return what + " in this line: it is missing" + read
	}
}

// next returns the next line, which is valid JSON, and its number, or io.EOF. The bytes are
// valid until the next call. A last line that was cut off ends the file with a warning; a
// broken line before that is an error.
func (in *input) next() ([]byte, int, error) {
	if len(in.pending) > 0 {
		h := in.pending[0]
		in.pending = in.pending[1:]
		return h.line, h.number, nil
	}
	return in.readChecked()
}

// each calls read with every line, which is valid until it returns.
func (in *input) each(read func(line []byte, number int)) error {
	for {
		line, number, err := in.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		read(line, number)
	}
}

// hasMore reports whether another line follows.
func (in *input) hasMore() bool {
	if len(in.pending) > 0 {
		return true
	}
	line, number, err := in.readChecked()
	if err == nil {
		in.unread(line, number)
		return true
	}
	if err != io.EOF {
		in.failed = err
		return true
	}
	return false
}

// readChecked is next without the lines that were put back by unread.
func (in *input) readChecked() ([]byte, int, error) {
	for {
		if len(in.mended) > 0 {
			l := in.mended[0]
			in.mended = in.mended[1:]
			return l.line, l.number, nil
		}
		line, number, err := in.readRaw()
		if err != nil {
			return nil, 0, err
		}
		checked, err := in.check(line, number)
		if err == nil {
			in.learn(checked)
			return checked, number, nil
		}
		if errors.Is(err, ErrTooDeep) {
			in.leaveOut(number, err)
			continue
		}
		if !in.mend(line, number, err) {
			in.report.cutOff = &Warning{number, in.sayCutOff(err, number-1)}
			return nil, 0, io.EOF
		}
	}
}

// leaveOut tells of a line that nests too deep.
func (in *input) leaveOut(number int, why error) {
	in.report.warn(number, "%v; the line was left out", errors.Unwrap(why))
}

// start finds out whether each line of the file is a document or all lines are one, and puts
// the first document back.
func (in *input) start() error {
	line, number, err := in.readRaw()
	if err == io.EOF {
		return fmt.Errorf("the file is blank: %w", ErrEmpty)
	}
	if err != nil {
		return err
	}
	first := unreadLine{bytes.Clone(line), number}
	checked, broken := in.check(first.line, first.number)
	for errors.Is(broken, ErrTooDeep) { // unless it is all that there is
		if line, number, err = in.readRaw(); err != nil || !isObject(line) {
			return broken
		}
		in.leaveOut(first.number, broken)
		first = unreadLine{bytes.Clone(line), number}
		checked, broken = in.check(first.line, first.number)
	}
	if broken == nil {
		in.learn(checked)
		in.unread(checked, first.number)
		return nil
	}
	if c := first.line[0]; c != '{' && c != '[' {
		for n := 1; n <= maxJoined && in.lookAhead(n); n++ {
			if next := in.raw[n-1].line; isObject(next) && rawjson.Valid(next) { // the beginning of the file is damaged
				in.raw = slices.Insert(in.raw, 0, first)
				return nil
			}
		}
		return fmt.Errorf("the file starts with %q, which is no JSON: %w", clip.Line(string(first.line), 40), ErrUnknownFormat)
	}
	doc, warned := first.line, len(in.report.Warnings) // all lines as they are
	for last := first.number; err == nil && len(doc) <= in.maxLine; last = number {
		if line, number, err = in.readRaw(); err == nil {
			if last == first.number && len(doc) > 2 && isObject(line) && rawjson.Valid(line) {
				in.raw = []unreadLine{first, {bytes.Clone(line), number}}
				return nil
			}
			if last == first.number {
				doc = append(doc, '\n')
			}
			for ; last < number-1; last++ {
				doc = append(doc, '\n') // a blank one
			}
			doc = append(doc, in.buf...)
		}
	}
	if err == nil {
		return &SyntaxError{Line: first.number, Err: fmt.Errorf("a document over %d bytes: %w", in.maxLine, ErrTooLong)}
	}
	if err != io.EOF {
		return err
	}
	if checked, err = in.check(doc, first.number); err == nil {
		in.unread(checked, first.number)
		return nil
	}
	if asLines(doc) { // they are read once more
		in.report.Warnings = in.report.Warnings[:warned]
		in.r, in.number, in.ended = bufio.NewReaderSize(bytes.NewReader(doc), readSize), first.number-1, false
		return nil
	}
	return in.locate(doc, first.number, err)
}

// locate adds the line to the error of a broken document.
func (in *input) locate(doc []byte, number int, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := min(int(syntax.Offset), len(bytes.TrimSpace(doc)))
		number += bytes.Count(doc[:at], []byte("\n"))
		if what := in.whatCutOff(syntax); what != "" {
			return &SyntaxError{Line: number, Err: fmt.Errorf("%s in this line, inside of a JSON document; nothing of it could be read: %w", what, syntax)}
		}
		return &SyntaxError{Line: number, Err: fmt.Errorf("not valid JSON: %w", syntax)}
	}
	return err
}

// check returns the line, in valid UTF-8, if it is valid JSON.
func (in *input) check(line []byte, number int) ([]byte, error) {
	if !utf8.Valid(line) {
		in.report.warn(number, "bytes that are not UTF-8 were replaced")
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	switch err := rawjson.Check(line); {
	case errors.Is(err, rawjson.ErrDepth):
		return nil, &SyntaxError{Line: number, Err: err}
	case err != nil:
		return nil, &SyntaxError{Line: number, Err: fmt.Errorf("not valid JSON: %w", whyInvalid(line))}
	}
	return line, nil
}

// whyInvalid returns the standard library's error for a line that is not valid JSON.
func whyInvalid(line []byte) error {
	var any json.RawMessage
	err := json.Unmarshal(line, &any)
	if err == nil {
		return errors.New("not one JSON value")
	}
	return err
}

// unread puts a copy of a line back, after those already put back.
func (in *input) unread(line []byte, number int) {
	in.pending = append(in.pending, unreadLine{bytes.Clone(line), number})
}
