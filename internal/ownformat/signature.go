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

// MarkRecaps marks our summaries among messages that were read as Recap. A summary that shares a message with other
// text, because providers join messages of one role, becomes a message of its own, and the rest stays as it was.
// Messages with an id and Injected ones are not split. before is the previous message, or nil.
func MarkRecaps(messages []thread.Message, before *thread.Message) []thread.Message {
	out := messages
	for i := 0; i < len(out); i++ {
		m := &out[i]
		switch {
		case m.Role == thread.Tool, m.IsAdded(), m.Kind == thread.Injected:
		case IsSummary(m):
			m.Kind = thread.Recap
		case m.Role == thread.Assistant && isAssent(m, before):
			m.Kind = thread.Recap
		case m.ID != "": // two messages cannot share an id
		default:
			if pieces := splitSummaries(m); len(pieces) > 1 {
				out = slices.Replace(slices.Clone(out), i, i+1, pieces...)
				i += len(pieces) - 1
				reframe(out, i)
			}
		}
		before = &out[i]
	}
	return out
}

// isAssent reports whether m is only the word of assent behind a summary of policy loop.
func isAssent(m, before *thread.Message) bool {
	return before != nil && before.Kind == thread.Recap && before.Role == thread.User && len(m.Parts) == 1 &&
		strings.TrimSpace(m.Text()) == assent && strings.HasPrefix(strings.TrimSpace(before.Text()), loopOpening)
}

// splitSummaries splits a message into summaries and the rest. In messages of the assistant and the system only the
// front can be a summary: further down they quote them.
func splitSummaries(m *thread.Message) []thread.Message {
	var pieces []thread.Message
	add := func(kind thread.Kind, p thread.Part) {
		if n := len(pieces); n > 0 && pieces[n-1].Kind == kind {
			pieces[n-1].Parts = append(pieces[n-1].Parts, p)
			return
		}
		piece := *m
		piece.Kind, piece.Parts = kind, []thread.Part{p}
		pieces = append(pieces, piece)
	}
	quoting := false
	for _, p := range m.Parts {
		t, isText := p.(thread.Text)
		if !isText || quoting {
			quoting = quoting || m.Role != thread.User
			add(m.Kind, p)
			continue
		}
		summary, rest, ok := CutSummary(t.Text)
		switch {
		case isWholeSummary(m.Role, p):
			add(thread.Recap, p)
		case !ok:
			quoting = m.Role != thread.User
			add(m.Kind, p)
		default:
			add(thread.Recap, thread.Text{Text: summary, Source: thread.Source{API: t.API}})
			quoting = m.Role != thread.User
			add(m.Kind, thread.Text{Text: rest, Source: thread.Source{API: t.API, Cache: t.Cache}})
		}
	}
	return pieces
}

// packingAPIs are the APIs whose encoders accept several messages of one element.
var packingAPIs = map[string]bool{"anthropic": true, "gemini": true}

// reframe replaces the frame of messages[i] by one with the right number of messages, so that the element is sent
// unchanged while all of them are there. For other APIs it removes the frame, and the messages are encoded.
func reframe(messages []thread.Message, i int) {
	f := messages[i].Frame
	if f == nil {
		return
	}
	from, to := i, i+1
	for from > 0 && messages[from-1].Frame == f {
		from--
	}
	for to < len(messages) && messages[to].Frame == f {
		to++
	}
	var own *thread.Frame
	if packingAPIs[f.API()] {
		own = thread.NewFrame(f.API(), f.Raw(), f.Position(), f.Elements(), to-from)
	}
	for n := range messages[from:to] {
		m := &messages[from+n]
		if m.Frame, m.Index = own, n; own == nil {
			m.Index = 0
		}
	}
}
