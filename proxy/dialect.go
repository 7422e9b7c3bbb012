package proxy

import (
	"net/http"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// dialect is what an exchange must know of an API beside its request bodies.
type dialect interface {
	wire.Codec
	// readable reports whether the answer to a request comes in a form that is
	// read here.
	readable(*http.Request) bool
}

type messages struct{ wire.Codec }

func (messages) readable(*http.Request) bool { return true }

type chat struct{ wire.Codec }

func (chat) readable(*http.Request) bool { return true }

type responses struct{ wire.Codec }

func (responses) readable(*http.Request) bool { return true }

type contents struct{ wire.Codec }

// readable is false for streams that are one JSON array.
func (contents) readable(r *http.Request) bool {
	return !isStream(r) || r.URL.Query().Get("alt") == "sse"
}
