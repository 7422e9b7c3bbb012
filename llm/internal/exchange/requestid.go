package exchange

import (
	"net/http"

	"github.com/tidwall/gjson"
)

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
