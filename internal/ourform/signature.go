package ourform

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Anybody can write what a summary of ours looks like. Where there is a key, ours end
// with a line that nobody else can write.

const (
	signature    = "[signed by palimpsest: "
	signatureEnd = "]"
	// signatureBytes is how much of the MAC stands there: enough that nobody guesses it.
	signatureBytes = 8
)

// Signed is a text with the line behind it that says it is ours, where the text is a
// summary or a pointer of ours and there is a key. The same text and key give the same
// bytes.
func Signed(text, key string) string {
	if key == "" || strings.Contains(text, signature) || strings.HasPrefix(text, "<system>") {
		return text
	}
	s := strings.TrimSpace(text)
	if _, rest, ok := Summary(s); !ok || rest != "" {
		return text
	}
	return s + "\n" + signature + mac(s, key) + signatureEnd
}

// Unsigned is a text without such lines.
func Unsigned(text string) string {
	if !strings.Contains(text, "\n"+signature) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if _, ok := signedLine(line); !ok {
			b.WriteString(line)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// Authentic reports whether all that a message says is ours and signed with the key.
func Authentic(m *thread.Message, key string) bool {
	for _, p := range m.Parts {
		t, ok := p.(thread.Text)
		if !ok || !authentic(t.Text, key) {
			return false
		}
	}
	return len(m.Parts) > 0
}

func authentic(text, key string) bool {
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

// cutSigned cuts a text at its first signature: what is signed, the MAC, and what
// follows.
func cutSigned(s string) (head, sum, rest string, ok bool) {
	for at := 0; ; {
		i := strings.Index(s[at:], "\n"+signature)
		if i < 0 {
			return "", "", "", false
		}
		at += i + 1
		first, next := line(s[at:])
		if sum, ok := signedLine(first); ok {
			return s[:at-1], sum, s[at+next:], true
		}
	}
}

func signedLine(l string) (sum string, ok bool) {
	inner, ok := strings.CutPrefix(strings.TrimRight(l, "\r\n "), signature)
	sum, closed := strings.CutSuffix(inner, signatureEnd)
	return sum, ok && closed && len(sum) == 2*signatureBytes && strings.Trim(sum, "0123456789abcdef") == ""
}

func mac(text, key string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte("summary\n" + strings.TrimSpace(text)))
	return hex.EncodeToString(h.Sum(nil)[:signatureBytes])
}
