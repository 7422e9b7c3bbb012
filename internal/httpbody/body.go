// Package httpbody reads, decompresses and rewrites the bodies of requests and answers, within
// bounds, and passes on what it cannot read.
package httpbody

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

var ErrBusy = errors.New("no room for the body")

// Read reads a body up to a limit, piece by piece. whole says that nothing was left. claimed is the length
// that the body is said to have, 0 or less if nothing is said. It reserves nothing before a quarter of it has
// arrived; then there is room for the rest at once. A take that is not nil is asked for room for each piece
// but the first. The error is ErrBusy if there is none, else that of the connection; what was read before it
// is returned too.
func Read[T string | []byte](r io.Reader, limit, claimed int64, take func(bytes int) bool) (body T, whole bool, err error) {
	return ReadRest[T](r, limit, claimed, take, nil)
}

// ReadRest is Read for a body of which the beginning may be known: it leaves out the pieces of PieceSize bytes that
// it begins with and that isKnown knows. Nil knows none.
func ReadRest[T string | []byte](r io.Reader, limit, claimed int64, take func(bytes int) bool, isKnown func(piece []byte) bool) (rest T, whole bool, err error) {
	if r == nil {
		return rest, true, nil
	}
	if take == nil {
		take = func(int) bool { return true }
	}
	r = io.LimitReader(r, limit+1)
	var joined strings.Builder // where the body will be, once it is known how long that is
	var pieces []*[PieceSize]byte
	release := func() {
		for _, p := range pieces {
			piecePool.Put(p)
		}
		pieces = nil
	}
	defer release() // where there is no room
	join := func(length int) {
		joined.Grow(max(0, length-joined.Len()))
		for _, p := range pieces {
			joined.Write(p[:])
		}
		release()
	}
	size, known, reserved, length := 0, 0, 0, int(min(claimed, limit))
	for {
		piece, n := piecePool.Get().(*[PieceSize]byte), 0
		if n, err = fill(r, piece[:]); err != nil {
			join(size + n - known)
			joined.Write(piece[:n])
			piecePool.Put(piece)
			break
		}
		if isKnown != nil && known == size && isKnown(piece[:]) {
			known += PieceSize
			piecePool.Put(piece)
		} else {
			pieces = append(pieces, piece)
		}
		size += PieceSize
		if reserved -= PieceSize; reserved < 0 {
			if reserved = 0; !take(PieceSize) {
				return rest, false, ErrBusy
			}
		}
		isJoined := joined.Cap() > 0
		if left := (length - size - 1) / PieceSize * PieceSize; !isJoined && left > 0 && known < size && size >= length/4 && take(left) {
			isJoined, reserved = true, left
		}
		if isJoined { // each piece is copied while the processor's cache has it
			join(length - known)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return T(joined.String()), err == nil && int64(known+joined.Len()) <= limit, err
}

// fill reads until the piece is full. The error, also that of the end, comes with what was read before it.
func fill(r io.Reader, piece []byte) (n int, err error) {
	for n < len(piece) && err == nil {
		var m int
		m, err = r.Read(piece[n:])
		n += m
	}
	return n, err
}

// PieceSize is the size of the pieces, which are reused, in which bodies are read, in bytes.
const PieceSize = 32 << 10

var piecePool = sync.Pool{New: func() any { return new([PieceSize]byte) }}

// Buffers are the pieces as an httputil.BufferPool.
type Buffers struct{}

// Get returns a piece.
func (Buffers) Get() []byte { return piecePool.Get().(*[PieceSize]byte)[:] }

// Put takes a piece back.
func (Buffers) Put(piece []byte) { piecePool.Put((*[PieceSize]byte)(piece)) }

// Rejoin puts what was read of a body before the rest again: behind it comes the error that
// reading ended with or, without one, what was not read yet.
func Rejoin[T string | []byte](read T, err error, rest io.Reader, body io.Closer) io.ReadCloser {
	if err != nil {
		rest = errorReader{err}
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader(string(read)), rest), body}
}

type errorReader struct{ err error }

func (f errorReader) Read([]byte) (int, error) { return 0, f.err }

var ErrEncoding = errors.New("unsupported content encoding")

// A decompressed body may be maxRatio times as large, and minDecompressed in any case. Text
// compresses ten times, hardly ever a hundred times.
const (
	maxRatio        = 200
	minDecompressed = 4 << 20
)

// Decompress returns a decompressed body; see Read for take.
func Decompress[T string | []byte](h http.Header, body T, limit int64, take func(bytes int) bool) (T, error) {
	r, err := newDecompressor(h, strings.NewReader(string(body)))
	if err != nil || r == nil {
		return body, err
	}
	defer r.Close()
	limit = min(limit, minDecompressed+maxRatio*int64(len(body)))
	out, whole, err := Read[T](r, limit, 0, take)
	if err == nil && !whole {
		err = fmt.Errorf("the decompressed body has more than %d bytes", limit)
	}
	return out, err
}

// decompressors undo the values of Content-Encoding. Brotli is not among them: no library for it is
// among the dependencies, and no client sends it.
var decompressors = map[string]func(io.Reader) (io.ReadCloser, error){
	"gzip":    gunzip,
	"x-gzip":  gunzip,
	"deflate": inflate,
	"zstd": func(r io.Reader) (io.ReadCloser, error) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	},
}

func gunzip(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

// Encoding is how a body is compressed; empty for not at all.
func Encoding(h http.Header) string {
	encoding := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding")))
	if encoding == "identity" {
		return ""
	}
	return encoding
}

// newDecompressor undoes a Content-Encoding; nil if there is none. Closing it does not close r.
func newDecompressor(h http.Header, r io.Reader) (io.ReadCloser, error) {
	encoding := Encoding(h)
	if encoding == "" {
		return nil, nil
	}
	open := decompressors[encoding]
	if open == nil {
		return nil, fmt.Errorf("%q: %w", encoding, ErrEncoding)
	}
	return open(r)
}

// maxZstdWindow is the largest window, in bytes, that a receiver must support (RFC 9659, section 3).
const maxZstdWindow = 8 << 20

// inflate reads deflate with zlib's frame, as RFC 9110 has it, and without, as some servers send it.
func inflate(r io.Reader) (io.ReadCloser, error) {
	var first [2]byte
	n, err := io.ReadFull(r, first[:])
	if err != nil {
		return nil, err
	}
	r = io.MultiReader(bytes.NewReader(first[:n]), r)
	if first[0]&0x0f == 8 && (int(first[0])<<8|int(first[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// lazyDecompressor decompresses a stream. It reads nothing before it is read: the first bytes can
// take long.
type lazyDecompressor struct {
	header http.Header
	from   io.ReadCloser
	z      io.ReadCloser
}

// DecompressStream takes the compression off a stream; it is false if that cannot be read here.
func DecompressStream(res *http.Response) bool {
	encoding := Encoding(res.Header)
	if encoding == "" {
		return true
	}
	if decompressors[encoding] == nil {
		return false
	}
	res.Body = &lazyDecompressor{header: res.Header.Clone(), from: res.Body}
	SetPlainLength(res, -1)
	return true
}

func (u *lazyDecompressor) Read(p []byte) (int, error) {
	if u.z == nil {
		z, err := newDecompressor(u.header, u.from)
		if err != nil {
			return 0, err
		}
		u.z = z
	}
	return u.z.Read(p)
}

// Close closes only the connection: another goroutine may be reading.
func (u *lazyDecompressor) Close() error { return u.from.Close() }

// SetPlainLength corrects the headers of an answer whose body is not compressed any more; a
// negative length is unknown.
func SetPlainLength(res *http.Response, length int64) {
	res.Header.Del("Content-Encoding")
	res.Header.Del("Content-Length")
	res.ContentLength = length
	res.Uncompressed = true
	if length >= 0 {
		res.Header.Set("Content-Length", strconv.FormatInt(length, 10))
	}
}

// MaxAnswer bounds an answer that is read as a whole, in bytes. A larger one passes as it is.
const MaxAnswer = 64 << 20

var ErrTooLong = fmt.Errorf("the answer has more than %d bytes", MaxAnswer)

// ReadAnswer reads and decompresses the body of an answer. The body can be read again afterwards, also
// after an error.
func ReadAnswer(res *http.Response) (plain []byte, err error) {
	raw, whole, err := Read[[]byte](res.Body, MaxAnswer, 0, nil)
	if err != nil || !whole {
		res.Body = Rejoin(raw, err, res.Body, res.Body)
		return nil, cmp.Or(err, ErrTooLong)
	}
	res.Body.Close()
	Set(res, raw)
	return Decompress(res.Header, raw, MaxAnswer, nil)
}

func Set(res *http.Response, b []byte) *http.Response {
	res.Body = io.NopCloser(bytes.NewReader(b))
	return res
}

// WithoutListed returns headers of which one, a list, has no elements that gone selects.
func WithoutListed(h http.Header, name string, gone func(element string) bool) http.Header {
	out := h.Clone()
	var left []string
	for element := range strings.SplitSeq(strings.Join(h.Values(name), ","), ",") {
		if element = strings.TrimSpace(element); element != "" && !gone(element) {
			left = append(left, element)
		}
	}
	out.Del(name)
	if len(left) > 0 {
		out.Set(name, strings.Join(left, ","))
	}
	return out
}

// AcceptReadable has the provider compress its answer by gzip at most, so that it can be read here.
func AcceptReadable(out *http.Request) {
	out.Header = out.Header.Clone()
	accepted := out.Header.Get("Accept-Encoding")
	switch {
	case accepted == "":
	case strings.Contains(accepted, "gzip"):
		out.Header.Set("Accept-Encoding", "gzip")
	default:
		out.Header.Set("Accept-Encoding", "identity")
	}
}

// AcceptsOnlyReadable reports whether every encoding that a client accepts can be read here.
func AcceptsOnlyReadable(h http.Header) bool {
	for encoding := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		name, _, _ := strings.Cut(encoding, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "", "identity", "gzip", "x-gzip", "deflate":
		default:
			return false
		}
	}
	return true
}

// The types of content of answers.
const (
	JSON        = "application/json"
	EventStream = "text/event-stream; charset=utf-8"
)

// NewAnswer is an answer of our own.
func NewAnswer(r *http.Request, status int, kind, body string) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {kind}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}
