package native

import (
	"bytes"
	"compress/flate"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

// Prefix begins every token, and no opaque value of a provider. Every request is searched for it,
// so its first character is rare: that takes 0.05 ms for a body of 1 MB, and twenty times as long
// for a letter.
const Prefix = "~palimpsest.c1."

// Token is the opaque value of a compaction that was made here. It says where the conversation is
// kept, and holds the summary, or a digest of it if the client has it in the clear. A client
// keeps it like a provider's own value, and sends it back.
type Token struct {
	// API is the name of the API in package wire. Another API does not take the token.
	API string `json:"a"`
	// Kind is the provider's name of the way to compact that was asked for.
	Kind string `json:"k,omitempty"`
	// Thread is the log of the conversation; empty for none.
	Thread string `json:"t,omitempty"`
	// At is how many messages of the log it stands for, and Last the id of the last of them; 0
	// and empty if it stands for its summary alone.
	At   int    `json:"n,omitempty"`
	Last string `json:"l,omitempty"`
	// Summary is the text that stands for what was removed. If the client keeps the text itself,
	// Digest is its digest instead.
	Summary string `json:"s,omitempty"`
	Digest  string `json:"d,omitempty"`
	// Structured is the summary behind the text, for the next compaction; nil if only the text is
	// known.
	Structured *summary.Summary `json:"r,omitempty"`
}

// The errors of Open.
var (
	// ErrForeign says that a value is not ours, but a provider's.
	ErrForeign = errors.New("not a value of this proxy")
	// ErrForged says that a value looks like ours, but was not signed with this key: it is
	// damaged, or another proxy's.
	ErrForged = errors.New("the signature does not match: the value is damaged, or was made by another proxy, or with another key")
)

// maxToken bounds what a token may hold, in bytes: it is decompressed before its signature is
// checked.
const maxToken = 1 << 20

// IsToken reports whether a value has the form of a token, whoever signed it.
func IsToken(value string) bool { return strings.HasPrefix(value, Prefix) }

// Digest is the digest of a text, for Token.Digest.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Seal writes a token, signed with a key. The result is deterministic.
func Seal(key []byte, t Token) string {
	plain, err := json.Marshal(t)
	if err != nil {
		panic(err) // a Token can always be encoded
	}
	var body bytes.Buffer
	w, _ := flate.NewWriter(&body, flate.BestCompression) // the level is a known one
	w.Write(plain)
	w.Close()
	text := Prefix + base64.RawURLEncoding.EncodeToString(body.Bytes())
	return text + "." + base64.RawURLEncoding.EncodeToString(mac(key, text))
}

// Open reads what Seal wrote for an API. The error wraps ErrForeign or ErrForged. A forged token is
// returned as far as it can be read, for its summary, which is then the client's own words.
func Open(key []byte, api, value string) (Token, error) {
	rest, ours := strings.CutPrefix(value, Prefix)
	if !ours {
		return Token{}, ErrForeign
	}
	body, sum, _ := strings.Cut(rest, ".")
	packed, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return Token{}, fmt.Errorf("%w (it is no base64)", ErrForged)
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxToken))
	if err != nil {
		return Token{}, fmt.Errorf("%w (it is cut off)", ErrForged)
	}
	var t Token
	if err := json.Unmarshal(plain, &t); err != nil {
		return Token{}, fmt.Errorf("%w (what it holds is no JSON)", ErrForged)
	}
	given, err := base64.RawURLEncoding.Strict().DecodeString(sum)
	if err != nil || !hmac.Equal(given, mac(key, Prefix+body)) {
		return t, ErrForged
	}
	if t.API != api {
		return t, fmt.Errorf("%w: it is of the API %.20q", ErrForged, t.API)
	}
	return t, nil
}

// mac signs a text. It begins with the purpose, so that another use of the same key gives no
// signature of this kind.
func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("palimpsest native compaction\x00"))
	h.Write([]byte(text))
	return h.Sum(nil)
}
