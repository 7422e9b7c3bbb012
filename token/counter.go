package token

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// errUnknownCounter is wrapped by errors about an unknown name of a counter.
var errUnknownCounter = errors.New("unknown token counter")

// textCounter counts the tokens of a text, as long as its context lasts.
type textCounter func(live *effort.Budget, s string) int

// Counter counts the tokens of a text, a message or a whole request for one family of models.
//
// Make one with New or ForModel; the zero value is not usable. A Counter never changes and is
// safe for concurrent use.
type Counter struct {
	name   string
	text   textCounter
	band   float64
	family family
	images imageFormula
	live   *effort.Budget // of a counter that Until made
	known  *knownTexts    // of a counter that Remembering made

	// base and factor are set in a counter that Scaled made.
	base   *Counter
	factor float64
}

// Options adjust a counter; nil and the zero value hold the defaults of its name.
type Options struct {
	// Family is the provider whose overhead for roles and tools is added: "openai",
	// "anthropic", "gemini" or "none".
	Family string
	// Images is the formula for the size of images; see Model.Images.
	Images string
}

// counters are the counters by name, except chars/N and bytes/N.
var counters = []struct {
	name           string
	text           textCounter
	band           float64
	family, images string
}{
	{"o200k", countO200k, 0, "openai", "tiles-85-170"},
	{"cl100k", countCl100k, 0, "openai", "tiles-85-170"},
	{"claude", claude.count, claudeBand, "anthropic", "claude-1568"},
	{"claude-4.7", claude47.count, claude47Band, "anthropic", "claude-2576"},
	{"gemini", gemini.count, geminiBand, "gemini", "gemini-768"},
}

func countO200k(live *effort.Budget, s string) int  { return o200k().count(live, s) }
func countCl100k(live *effort.Budget, s string) int { return cl100k().count(live, s) }

// New returns the counter of the given name:
//
//   - "o200k", "cl100k": the exact byte-pair encodings of OpenAI's models;
//   - "claude", "claude-4.7", "gemini": estimates by class of content, calibrated on
//     recorded usage (docs/tokens.md); "claude-4.7" is for the tokenizer that Anthropic
//     introduced with Opus 4.7;
//   - "chars/4", "bytes/3.5", …: a plain ratio, rounded up.
//
// For any other name the error lists the names. An unknown family or image formula is an error too.
func New(name string, o *Options) (*Counter, error) {
	o = cmp.Or(o, &Options{})
	for _, k := range counters {
		if k.name == name {
			return newCounter(name, k.text, k.band, cmp.Or(o.Family, k.family), cmp.Or(o.Images, k.images))
		}
	}
	if unit, number, ok := strings.Cut(name, "/"); ok && (unit == "chars" || unit == "bytes") {
		ratio, err := strconv.ParseFloat(number, 64)
		if err != nil || !(ratio >= 0.1 && ratio <= 100) {
			return nil, fmt.Errorf("token counter %q: the number after the slash must lie between 0.1 and 100: %w", name, errUnknownCounter)
		}
		size := utf8.RuneCountInString
		if unit == "bytes" {
			size = func(s string) int { return len(s) }
		}
		text := func(_ *effort.Budget, s string) int { return int(math.Ceil(float64(size(s)) / ratio)) }
		return newCounter(name, text, ratioBand, cmp.Or(o.Family, "none"), cmp.Or(o.Images, "fixed-1600"))
	}
	return nil, fmt.Errorf("token counter %q, known are %s, chars/N, bytes/N: %w", name, strings.Join(Counters(), ", "), errUnknownCounter)
}

// Counters lists the names that New knows, without the ratios.
func Counters() []string {
	names := make([]string, len(counters))
	for i, k := range counters {
		names[i] = k.name
	}
	return names
}

func newCounter(name string, text textCounter, band float64, familyName, imagesName string) (*Counter, error) {
	f, ok := families[familyName]
	if !ok {
		return nil, fmt.Errorf("token counter %q: family %q is none of openai, anthropic, gemini, none", name, familyName)
	}
	images, ok := imageFormulas[imagesName]
	if !ok {
		return nil, fmt.Errorf("token counter %q: image formula %q is not known", name, imagesName)
	}
	return &Counter{name: name, text: text, band: band, family: f, images: images}, nil
}

// ForModel returns the counter of a model, with its provider's overhead and its formula for
// images. The error says which field of the model is unknown.
func ForModel(m Model) (*Counter, error) {
	c, err := New(m.Counter, &Options{Family: familyOf(m.Provider), Images: m.Images})
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", m.Name, err)
	}
	if m.Estimated && c.band == 0 {
		c.band = strangerBand
	}
	return c, nil
}

// Scaled returns a counter whose counts are those of c times factor, rounded up: for a provider
// that is known to count more or less than c. It is always an estimate. A factor that is not
// above 0 counts as 1.
func (c *Counter) Scaled(factor float64) *Counter {
	if c.base != nil {
		c, factor = c.base, factor*c.factor
	}
	if !(factor > 0) || factor == 1 {
		return c
	}
	return &Counter{name: fmt.Sprintf("%s*%.3g", c.name, factor), band: max(c.band, strangerBand), base: c, factor: factor}
}

// Until returns the counter for work that may be broken off: once ctx, a context, has an error,
// which is looked at within long texts too, its counts mean nothing. It is for one goroutine.
func (c *Counter) Until(ctx interface{ Err() error }) *Counter {
	out := *c
	if c.base != nil {
		out.base = c.base.Until(ctx)
	}
	out.live = effort.New(ctx, 0)
	return &out
}

// Factor is what Scaled multiplies counts with; 1 for a counter that is not scaled.
func (c *Counter) Factor() float64 { return cmp.Or(c.factor, 1) }

func (c *Counter) scale(n int) int { return int(math.Ceil(float64(n)*c.factor - 1e-9)) }

// Name returns the name of the counter as for New; for a scaled one, with the factor.
func (c *Counter) Name() string { return c.name }

// Exact reports whether Text returns the provider's own number. Message, Tools and Prompt add
// overhead that providers hardly document, so even for an exact counter they are only close.
func (c *Counter) Exact() bool { return c.band == 0 }

// Band returns how far below the truth an estimate may be over a conversation, as a share of
// the truth (0.15 is 15 percent); 0 for an exact counter. Estimates are usually too high, for
// scripts other than Latin perhaps by far.
func (c *Counter) Band() float64 { return c.band }

// Text returns the tokens of a text. It is 0 only for the empty text. Text that looks like a
// special token is plain text, and an invalid byte counts as the replacement character U+FFFD,
// which a JSON encoder sends in its place (for bytes/N it is one byte).
//
// Two texts joined have at most a few tokens more than separately. With an estimate they may
// have more, if the letters and digits at the seam look like base64 or a hash.
func (c *Counter) Text(s string) int {
	switch {
	case s == "":
		return 0
	case c.base != nil:
		return c.scale(c.base.Text(s))
	case c.known != nil && len(s) >= longText:
		return max(1, c.known.count(c, s))
	}
	return max(1, c.text(c.live, s))
}

// Message returns the tokens of a message, including the overhead of its role. It is 0 for a result
// that only a program of the provider reads.
func (c *Counter) Message(m *thread.Message) int {
	if c.base != nil {
		return c.scale(c.base.Message(m))
	}
	if r, ok := m.Result(); ok && r.Program {
		return 0
	}
	n := c.family.message + c.parts(m.Parts)
	if m.Role == thread.Tool {
		n -= c.family.message - c.family.toolMessage
	}
	if m.Name != "" {
		n += c.family.name + c.Text(m.Name)
	}
	return n
}

// System returns the tokens of the instruction blocks.
func (c *Counter) System(blocks []prompt.System) int {
	if c.base != nil {
		return c.scale(c.base.System(blocks))
	}
	n := 0
	for _, b := range blocks {
		n += c.family.system + c.Text(b.Text)
	}
	return n
}

// Overhead returns the tokens that every request has in addition.
func (c *Counter) Overhead() int {
	if c.base != nil {
		return c.scale(c.base.Overhead())
	}
	return c.family.request
}

// Prompt returns the tokens of a whole request. It is exactly
//
//	Overhead() + System(p.System) + Tools(p.Tools) + the sum of Message over p.Messages
//
// so that budgets can be filled message by message.
func (c *Counter) Prompt(p *prompt.Prompt) int {
	n := c.Overhead() + c.System(p.System) + c.Tools(p.Tools)
	for i := range p.Messages {
		n += c.Message(&p.Messages[i])
	}
	return n
}

func (c *Counter) parts(parts []thread.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case thread.Text:
			n += c.Text(p.Text)
		case thread.Reasoning:
			n += c.reasoning(p)
		case thread.Media:
			n += c.media(p)
		case thread.ToolCall:
			n += c.family.call + c.Text(p.Name) + c.Text(p.Arguments)
			if c.family.sealed {
				n += sealedTokens(len(p.Signature))
			}
		case thread.ToolResult:
			n += c.family.result
			if len(p.Content) > 0 {
				n += c.parts(p.Content)
			} else {
				n += c.Text(p.Structured)
			}
		case thread.Opaque:
			if p.Answers && p.Parent != "" {
				continue // the program that made the call reads it, the model does not
			}
			if p.Text != "" {
				n += c.Text(p.Text)
			} else {
				n += c.raw(p.Raw)
			}
		}
	}
	return n
}
