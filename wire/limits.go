package wire

import (
	"fmt"
	"strings"
)

// Size is what a request takes beside its tokens.
type Size struct {
	// Bytes are those of the body, Pictures is how many images and documents of pages it holds, and Side is the
	// longest side of an image, in pixels; 0 where none can be read.
	Bytes, Pictures, Side int
}

// Limits are the sizes of a request that an API takes. Zero is not known.
type Limits struct {
	Size
	// ManySide is the longest side in a request with more than Many images.
	Many, ManySide int
}

// limits are the published ones, as of November 2026. Compatible servers have others.
var limits = map[string]Limits{
	// https://docs.anthropic.com/en/api/overview (request size limits)
	// https://platform.claude.com/docs/en/build-with-claude/vision (general limits)
	Anthropic: {Size{Bytes: 32 << 20, Pictures: 100, Side: 8000}, 20, 2000},
	// https://developers.openai.com/api/docs/guides/images-vision (image input requirements)
	Chat:      {Size: Size{Bytes: 512 << 20, Pictures: 1500}},
	Responses: {Size: Size{Bytes: 512 << 20, Pictures: 1500}},
	// https://ai.google.dev/gemini-api/docs/file-input-methods (inline data)
	// https://ai.google.dev/gemini-api/docs/image-understanding (file limit)
	Gemini: {Size: Size{Bytes: 100 << 20, Pictures: 3600}},
}

// pictures are how many images a request may hold for models that take another number than their API; each
// is for names that contain one of the words, such as "anthropic/claude-opus-5".
var pictures = []struct {
	api, words string
	most       int
}{
	// Anthropic's with a window of more than 200,000 tokens
	{Anthropic, "claude-fable-5 claude-mythos-5 claude-opus-5 claude-sonnet-5 claude-haiku-5-5 claude-opus-4-6 claude-opus-4-7 claude-opus-4-8 claude-sonnet-4-6", 600},
}

// LimitsOf returns the limits of an API for a model, the zero value for an API without known limits. An empty or
// unknown model has those that hold for all.
func LimitsOf(api, model string) Limits {
	l := limits[api]
	for _, row := range pictures {
		for word := range strings.FieldsSeq(row.words) {
			if row.api == api && strings.Contains(model, word) {
				l.Pictures = row.most
			}
		}
	}
	return l
}

// Broken returns the limits that a request of this size breaks.
func (l Limits) Broken(s Size) (broken []Problem) {
	side := l.Side
	if s.Pictures > l.Many && l.Many > 0 {
		side = l.ManySide
	}
	for _, row := range [...]struct {
		have, most      int
		path, rule, say string
	}{
		{s.Bytes, l.Bytes, "body", "size", "%d bytes are more than the %d that the API reads: send less, or upload files"},
		{s.Pictures, l.Pictures, "messages", "pictures", "%d images are more than the %d that the API takes: leave old ones out"},
		{s.Side, side, "messages", "pixels", "an image has a side of %d pixels, and the API takes %d in a request with so many: send smaller images, or fewer"},
	} {
		if row.most > 0 && row.have > row.most {
			broken = append(broken, Problem{Path: row.path, Rule: row.rule, Message: fmt.Sprintf(row.say, row.have, row.most)})
		}
	}
	return broken
}
