package ownformat

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Anybody can write text that looks like a summary of ours. If there is a key, ours end with a line that nobody
// else can write.

const (
	signatureStart = "[signed by palimpsest: "
	// signatureBytes is how much of the MAC is written.
	signatureBytes = 8
	signedLine     = `\[signed by palimpsest: ([0-9a-f]{16})\][ \r]*(?:\n|\z)`
)

var (
	anySignature  = lazyregexp.New(`(?m)^` + signedLine)
	nextSignature = lazyregexp.New(`\n` + signedLine)
)

// Sign adds the signature to a text that is a summary or a pointer of ours, if there is a key. It is deterministic.
func Sign(text, key string) string {
	if key == "" || strings.Contains(text, signatureStart) || strings.HasPrefix(text, "<system>") {
		return text
	}
	s := strings.TrimSpace(text)
	if _, rest, ok := CutSummary(s); !ok || rest != "" {
		return text
	}
	return s + "\n" + signatureStart + mac(s, key) + "]"
}

// StripSignatures removes signatures from a text.
func StripSignatures(text string) string {
	if !strings.Contains(text, "\n"+signatureStart) {
		return text
	}
	return strings.TrimRight(anySignature().ReplaceAllString(text, ""), "\n")
}

// IsAuthentic reports whether everything in a message is signed with the key.
func IsAuthentic(m *thread.Message, key string) bool {
	return len(m.Parts) > 0 && !slices.ContainsFunc(m.Parts, func(p thread.Part) bool {
		t, ok := p.(thread.Text)
		return !ok || !isAuthentic(t.Text, key)
	})
}

func isAuthentic(text, key string) bool {
	s := strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(s, "<system>\n"); ok {
		s = strings.TrimSuffix(inner, "\n</system>")
	}
	for s != "" {
		head, sum, rest, ok := cutSigned(s)
		if !ok || !hmac.Equal([]byte(sum), []byte(mac(head, key))) {
			return false
		}
		s = strings.TrimSpace(rest)
	}
	return true
}

// cutSigned cuts a text at its first signature, and returns the signed text, the MAC and the rest.
func cutSigned(s string) (head, sum, rest string, ok bool) {
	at := nextSignature().FindStringSubmatchIndex(s)
	if at == nil {
		return "", "", "", false
	}
	return s[:at[0]], s[at[2]:at[3]], s[at[1]:], true
}

func mac(text, key string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte("summary\n" + strings.TrimSpace(text)))
	return hex.EncodeToString(h.Sum(nil)[:signatureBytes])
}
