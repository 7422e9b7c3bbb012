package exchange

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Headers returns headers, given as names and values, without empty ones. The extra headers of
// the caller replace them.
func Headers(extra http.Header, own ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(own); i += 2 {
		if own[i+1] != "" {
			h.Set(own[i], own[i+1])
		}
	}
	maps.Copy(h, extra.Clone())
	return h
}

// Bearer is the value of an Authorization header; empty without a token.
func Bearer(token string) string {
	if token == "" {
		return ""
	}
	return bearer + token
}

const bearer = "Bearer "

// credentials are in the names of headers that may hold some.
var credentials = []string{"auth", "key", "token", "secret", "cookie"}

// secrets returns the values of headers that may hold credentials.
func secrets(h http.Header) []string {
	var list []string
	for name, values := range h {
		name = strings.ToLower(name)
		if slices.ContainsFunc(credentials, func(word string) bool { return strings.Contains(name, word) }) {
			list = append(list, values...)
		}
	}
	return list
}

// requestIDs are the headers in which providers name a request.
var requestIDs = []string{
	"Request-Id",       // Anthropic
	"X-Request-Id",     // OpenAI and most others
	"Apim-Request-Id",  // Azure
	"X-Amzn-Requestid", // Bedrock
	"Cf-Ray",           // gateways behind Cloudflare that have nothing better
}

// maxID bounds an id, in bytes, so that an odd header does not fill a log.
const maxID = 200

func requestID(h http.Header) string {
	for _, name := range requestIDs {
		if id := h.Get(name); id != "" {
			return id[:min(len(id), maxID)]
		}
	}
	return ""
}
