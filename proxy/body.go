package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// errBusy says that there is no room for a body.
var errBusy = errors.New("no room for the body")

// readBody reads a body up to a limit, as it comes: what it says of its length reserves
// nothing. It is whole when nothing was left. take, where it is not nil, is asked for
// room for each piece but the first; the error is errBusy where there is none, else
// that of the connection. What came before it is there.
func readBody[T string | []byte](r io.Reader, limit int64, take func(bytes int) bool) (body T, whole bool, err error) {
	if r == nil {
		return body, true, nil
	}
	r = io.LimitReader(r, limit+1)
	var pieces []*[pieceSize]byte
	defer func() {
		for _, p := range pieces {
			piecePool.Put(p)
		}
	}()
	size := 0
	for err == nil {
		at := size % pieceSize
		if at == 0 {
			if len(pieces) > 0 && take != nil && !take(pieceSize) {
				return body, false, errBusy
			}
			pieces = append(pieces, piecePool.Get().(*[pieceSize]byte))
		}
		var n int
		n, err = r.Read(pieces[len(pieces)-1][at:])
		size += n
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range pieces {
		b.Write(p[:min(pieceSize, size-b.Len())])
	}
	return T(b.String()), err == nil && int64(size) <= limit, err
}

// The pieces in which bodies are read are used again.
const pieceSize = 32 << 10

var piecePool = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// rejoinBody puts what was read of a body in front of the rest again: behind it come the error
// that reading ended with or, without one, what was not read yet.
func rejoinBody[T string | []byte](read T, err error, rest io.Reader, body io.Closer) io.ReadCloser {
	if err != nil {
		rest = errorReader{err}
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader(string(read)), rest), body}
}

// errorReader gives the error that a body broke off with, in its place.
type errorReader struct{ err error }

func (f errorReader) Read([]byte) (int, error) { return 0, f.err }

// errEncoding says that a body is compressed in a way that is not read here.
var errEncoding = errors.New("content encoding that is not read here")

// A body may be so many times as large without its compression, beyond some bytes that
// every body may have. Text is packed ten times, hardly ever a hundred times.
const (
	maxRatio        = 200
	minDecompressed = 4 << 20
)

// decompress returns a body without its compression; see readBody for take.
func decompress[T string | []byte](h http.Header, body T, limit int64, take func(bytes int) bool) (T, error) {
	r, err := newDecompressor(h, strings.NewReader(string(body)))
	if err != nil || r == nil {
		return body, err
	}
	defer r.Close()
	limit = min(limit, minDecompressed+maxRatio*int64(len(body)))
	out, whole, err := readBody[T](r, limit, take)
	if err == nil && !whole {
		err = fmt.Errorf("the body has more than %d bytes without its compression", limit)
	}
	return out, err
}

// newDecompressor undoes a Content-Encoding; nil where there is none. To close it does not
// close r. Brotli is not read: no library for it is among the dependencies, and
// no client sends it.
func newDecompressor(h http.Header, r io.Reader) (io.ReadCloser, error) {
	switch encoding := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding"))); encoding {
	case "", "identity":
		return nil, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate":
		return inflate(r)
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	default:
		return nil, fmt.Errorf("%q: %w", encoding, errEncoding)
	}
}

// maxZstdWindow is the largest window that a receiver should have to keep, in
// bytes (RFC 9659, section 3).
const maxZstdWindow = 8 << 20

// inflate reads deflate as RFC 9110 means it, with zlib's frame, and as some
// servers send it, without.
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

// lazyDecompressor undoes the compression of a stream. It begins to read when it is
// read: the first bytes can be long in coming.
type lazyDecompressor struct {
	header http.Header
	from   io.ReadCloser
	z      io.ReadCloser
}

// decompressStream takes the compression off a stream; it is false where it cannot be read here.
func decompressStream(res *http.Response) bool {
	switch strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding"))) {
	case "", "identity":
		return true
	case "gzip", "x-gzip", "deflate", "zstd":
		res.Body = &lazyDecompressor{header: res.Header.Clone(), from: res.Body}
		setPlainLength(res, -1)
		return true
	}
	return false
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

// Close closes the connection alone: somebody may be reading.
func (u *lazyDecompressor) Close() error { return u.from.Close() }
