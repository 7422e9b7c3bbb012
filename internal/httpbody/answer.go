package httpbody

import (
	"io"
	"net/http"
	"strconv"
	"strings"
)

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
