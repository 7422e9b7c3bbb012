package policy

import (
	"math"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// The defaults of seed B's configuration, in tokens (B2).
const (
	sessionLimit  = 128_000
	systemReserve = 2_000
	outputReserve = 4_000
	safetyBuffer  = 5_000
	sessionShare  = 0.80
	sessionKeep   = 10
)

// sessionLimits are the rows of the seed's table, in tokens (B3). They come
// before the table of package token, which knows the models of today.
var sessionLimits = map[string]int{
	"gpt-4o":                     128_000,
	"gpt-4-turbo":                128_000,
	"gpt-4":                      8_192,
	"claude-3-5-sonnet-20240620": 200_000,
	"claude-3-haiku-20240307":    200_000,
}

// limit is the context limit of the model, in tokens: the policy's own setting,
// the step's window, the seed's row of the model, the row of token.Models, or
// 128,000 (B3). A budget for the request bounds it: with the answer it may take
// no more.
func (p Session) limit(s *Situation) int {
	limit := p.ContextLimit
	if limit == 0 {
		limit = s.Window
	}
	if limit == 0 {
		limit = sessionLimits[s.Base.Model]
	}
	if limit == 0 {
		if m, err := token.Models().Find(s.Base.Model); err == nil {
			limit = m.Window
		}
	}
	if limit == 0 {
		limit = sessionLimit
	}
	if s.Budget > 0 {
		limit = min(limit, s.Budget+or0(p.OutputReserve, outputReserve))
	}
	return limit
}

// threshold is B2: floor((limit − system − output − safety) × share), 93,600 at
// 128,000. It is below zero where the reserves are larger than the limit, and
// everything is due then, as in the seed.
func (p Session) threshold(limit int) int {
	available := limit - or0(p.SystemReserve, systemReserve) - or0(p.OutputReserve, outputReserve) - or0(p.SafetyBuffer, safetyBuffer)
	return int(math.Floor(float64(available) * or(p.ThresholdPercent, sessionShare)))
}

// estimate is B1's sum over the list as the agent sees it: the system prompt as
// one message, then the others.
func estimate(system []prompt.System, entries []entry) int {
	total := 0
	if len(system) > 0 {
		total = roleTokens + quarter(systemUnits(system))
	}
	for i := range entries {
		total += estimateMessage(&entries[i].Message)
	}
	return total
}

// roleTokens is what the seed adds for the role of a message.
const roleTokens = 2

// estimateMessage is B1 for one message: 2 for its role, and a quarter of the
// characters, rounded up, of each text, of the name and the arguments of each
// call, and of each result as JSON. Characters are UTF-16 code units, which is
// what the length of a JavaScript string counts. Reasoning and media take
// nothing, as in the seed.
func estimateMessage(m *thread.Message) int {
	total := roleTokens
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Text:
			total += quarter(units(part.Text))
		case thread.Opaque:
			total += quarter(units(part.Text))
		case thread.ToolCall:
			total += quarter(units(part.Name)) + quarter(units(stringify(part.Arguments)))
		case thread.ToolResult:
			if part.Structured != "" {
				total += quarter(units(stringify(part.Structured)))
			} else {
				total += quarter(quotedUnits(part.Text()))
			}
		}
	}
	return total
}

func systemUnits(system []prompt.System) int {
	n := len(system) - 1 // the newlines between the blocks
	for _, block := range system {
		n += units(block.Text)
	}
	return n
}

func quarter(characters int) int { return (characters + 3) / 4 }
