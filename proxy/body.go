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
)

// body is what was read of a request.
type body struct{ bytes []byte }

// readBody reads a body of a length, or -1 where nobody said, up to a limit. It is
// whole when nothing was left. The error is that of the connection.
func readBody(r io.Reader, length, limit int64) (body, bool, error) {
	if r == nil {
		return body{}, true, nil
	}
	var b bytes.Buffer
	if length > 0 {
		b.Grow(int(min(length, limit)) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(r, limit+1))
	if err != nil {
		return body{}, false, err
	}
	return body{b.Bytes()}, n <= limit, nil
}

// rest is the body again, with what was not read yet behind it.
func (b body) rest(r io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(b.bytes), r), r}
}

// errEncoding says that a body is compressed in a way that is not read here.
var errEncoding = errors.New("content encoding that is not read here")

// decoded returns the bytes of a body without its compression.
func decoded(h http.Header, b []byte, limit int64) ([]byte, error) {
	r, err := decoder(h, bytes.NewReader(b))
	if err != nil || r == nil {
		return b, err
	}
	out, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(out)) > limit {
		err = fmt.Errorf("the body has more than %d bytes without its compression", limit)
	}
	return out, err
}

// decoder undoes a Content-Encoding; nil where there is none. The standard
// library has no brotli and no zstd.
func decoder(h http.Header, r io.Reader) (io.Reader, error) {
	switch encoding := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding"))); encoding {
	case "", "identity":
		return nil, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "deflate":
		return inflate(r)
	default:
		return nil, fmt.Errorf("%q: %w", encoding, errEncoding)
	}
}

// inflate reads deflate as RFC 9110 means it, with zlib's frame, and as some
// servers send it, without.
func inflate(r io.Reader) (io.Reader, error) {
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

// lazyGzip begins to read when it is read: the first bytes of a stream can be
// long in coming.
type lazyGzip struct {
	from io.Reader
	z    *gzip.Reader
}

func (l *lazyGzip) Read(p []byte) (int, error) {
	if l.z == nil {
		z, err := gzip.NewReader(l.from)
		if err != nil {
			return 0, err
		}
		l.z = z
	}
	return l.z.Read(p)
}
