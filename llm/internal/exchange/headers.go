package exchange

import (
	"maps"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
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

// secrets returns the values of headers that may hold credentials.
func secrets(h http.Header) []string {
	var list []string
	for name, values := range h {
		name = strings.ToLower(name)
		for _, word := range []string{"auth", "key", "token", "secret", "cookie"} {
			if strings.Contains(name, word) {
				list = append(list, values...)
				break
			}
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

// bodyRequestID reads Anthropic's request_id from an error's body, in case a gateway removed the
// header.
func bodyRequestID(body []byte) string {
	id := gjson.GetBytes(body, "request_id").Str
	return id[:min(len(id), maxID)]
}
