package token

import (
	"cmp"
	"encoding/base64"
	"math"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// imageFormula is a provider's rule for the tokens of an image of w x h pixels, both greater
// than 0, and the caller's detail setting.
type imageFormula struct {
	size    func(w, h int, detail string) int
	unknown int // if the size cannot be read: that of a large screenshot
}

// imageFormulas are named in the model table. Sources, read in November 2026:
// platform.claude.com "Vision" (28-pixel patches; 1568 px and 1568 tokens, or
// 2576 px and 4784 tokens from Opus 4.7 on); OpenAI's "Images and vision"
// (512-pixel tiles for the 4o, 4.1, o1, o3 and gpt-5 models; 32-pixel patches
// with a factor for the others); ai.google.dev "Media resolution" and "Tokens"
// (258 a tile of 768 pixels for Gemini 2; a budget of up to 1,120 an image for
// Gemini 3).
var imageFormulas = map[string]imageFormula{
	"claude-1568":        {patches(28, 1568, 1568, 1), 1568},
	"claude-2576":        {patches(28, 2576, 4784, 1), 4784},
	"tiles-85-170":       {tiles(85, 170), 1105},
	"tiles-70-140":       {tiles(70, 140), 910},
	"tiles-75-150":       {tiles(75, 150), 975},
	"tiles-2833-5667":    {tiles(2833, 5667), 36835},
	"patches-1536-x1.62": {patches(32, 0, 1536, 1.62), 2489},
	"patches-1536-x1.72": {patches(32, 0, 1536, 1.72), 2642},
	"patches-1536-x2.46": {patches(32, 0, 1536, 2.46), 3779},
	"patches-10000-x1.2": {patches(32, 0, 10000, 1.2), 2448},
	"gemini-768":         {geminiTiles, 1548},
	"gemini-1120":        {geminiBudget, 1120},
	"fixed-1600":         {func(int, int, string) int { return 1600 }, 1600},
}

// patches scales the image down until its long edge is at most edge (0: any) and it has at most
// `most` squares of side pixels, and charges factor for each square.
func patches(side, edge, most int, factor float64) func(w, h int, detail string) int {
	return func(w, h int, detail string) int {
		x, y := float64(w), float64(h)
		if long := max(x, y); edge > 0 && long > float64(edge) {
			x, y = x*float64(edge)/long, y*float64(edge)/long
		}
		squares := func() float64 { return math.Ceil(x/float64(side)) * math.Ceil(y/float64(side)) }
		limit := float64(most)
		if detail == "low" && edge == 0 {
			limit = min(limit, 256) // 512 x 512 pixels
		}
		// Partial squares count as whole ones, so the rest is scaled in small steps.
		for shrink := math.Sqrt(limit * float64(side*side) / (x * y)); squares() > limit; shrink = 0.995 {
			x, y = max(1, x*min(1, shrink)), max(1, y*min(1, shrink))
		}
		return int(math.Ceil(squares() * factor))
	}
}

// tiles scales the image to fit 2048 x 2048, then its short side to 768, and charges base once
// and tile for each 512 x 512. Low detail costs only base.
func tiles(base, tile int) func(w, h int, detail string) int {
	return func(w, h int, detail string) int {
		if detail == "low" {
			return base
		}
		x, y := float64(w), float64(h)
		if long := max(x, y); long > 2048 {
			x, y = x*2048/long, y*2048/long
		}
		if short := min(x, y); short > 768 {
			x, y = x*768/short, y*768/short
		}
		return base + tile*int(math.Ceil(x/512)*math.Ceil(y/512))
	}
}

// geminiTiles charges 258 for an image of at most 384 x 384 pixels, else for each tile of 768 x
// 768.
func geminiTiles(w, h int, _ string) int {
	if w <= 384 && h <= 384 {
		return 258
	}
	return 258 * ((w + 767) / 768) * ((h + 767) / 768)
}

// geminiBudget charges by the media resolution setting of Gemini 3; the default is high.
func geminiBudget(_, _ int, detail string) int {
	switch strings.ToLower(strings.TrimPrefix(strings.ToUpper(detail), "MEDIA_RESOLUTION_")) {
	case "low":
		return 280
	case "medium":
		return 560
	case "ultra_high":
		return 2240
	}
	return 1120
}

// Defaults for media of unknown size. A page of a PDF costs its text and an image of it: 1,500
// to 3,000 tokens (Anthropic, "PDF support"). Audio and video are charged by length (Gemini: 32
// and 263 tokens a second), which is expensive to find out, so a minute is assumed.
const (
	pageTokens   = 3000
	pagesUnknown = 10
	audioTokens  = 32 * 60
	videoTokens  = 263 * 60
	fileTokens   = 3000
)

// media counts a media part as providers charge it. Base64 is never counted as text.
func (c *Counter) media(m thread.Media) int {
	if m.Text != "" {
		return c.Text(m.Text)
	}
	data := m.Data
	if head, inline, ok := strings.Cut(m.URL, ","); ok && data == "" && strings.HasPrefix(head, "data:") {
		data = inline
	}
	kind := m.Type
	if m.MIME == "application/pdf" || kind == thread.File && pdfPages(data) > 0 {
		kind = thread.Document
	}
	switch kind {
	case thread.Image:
		w, h, ok := media.Size(data)
		if !ok {
			return c.images.unknown
		}
		return c.images.size(w, h, m.Detail)
	case thread.Document:
		if strings.HasPrefix(m.MIME, "text/") && data != "" {
			if text, err := base64.StdEncoding.DecodeString(data); err == nil {
				return c.Text(string(text))
			}
		}
		return cmp.Or(pdfPages(data), pagesUnknown) * pageTokens
	case thread.Audio:
		return audioTokens
	case thread.Video:
		return videoTokens
	}
	return fileTokens
}

// pdfPages counts the page objects of a PDF in base64. It is 0 for other data, and if they are
// in compressed streams.
func pdfPages(data string) int {
	if !strings.HasPrefix(data, "JVBER") { // %PDF
		return 0
	}
	b := string(media.DecodePrefix(data, len(data)))
	pages := 0
	for {
		i := strings.Index(b, "/Type")
		if i < 0 {
			return pages
		}
		b = strings.TrimLeft(b[i+len("/Type"):], " \t\r\n")
		if strings.HasPrefix(b, "/Page") && !strings.HasPrefix(b, "/Pages") {
			pages++
		}
	}
}
