package httpbody

import (
	"net/http"
	"strings"
)

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
