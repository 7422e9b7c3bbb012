package token

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/suggest"
)

// ErrUnknownModel is wrapped by errors about a model that is not in the table.
var ErrUnknownModel = errors.New("unknown model")

// Model has the limits and prices of a model. A zero number means unknown.
type Model struct {
	Name     string   `json:"name"`
	Provider string   `json:"provider"`
	Aliases  []string `json:"aliases,omitempty"`

	// Window is the context window, MaxInput the largest input if it has a limit of its own,
	// MaxOutput the longest answer; in tokens.
	Window    int `json:"window,omitempty"`
	MaxInput  int `json:"max_input,omitempty"`
	MaxOutput int `json:"max_output,omitempty"`

	// Counter is the name for New. Estimated: it is another model's, since this one has no offline tokenizer.
	Counter   string `json:"counter"`
	Estimated bool   `json:"estimated,omitempty"`
	// Images is the formula for the size of images; empty is that of the counter.
	Images string `json:"images,omitempty"`

	// Prices are by prompt length, shortest first; none if unknown.
	Prices []Price `json:"prices,omitempty"`
	Cache  Cache   `json:"cache,omitzero"`
	// BindsThinking says that the provider rejects a thinking block once anything before it has changed.
	BindsThinking bool `json:"binds_thinking,omitempty"`

	// Date is when the row was checked, Source where its numbers are from.
	Date   string `json:"date"`
	Source string `json:"source"`
}

// Price is in US dollars for a million tokens.
type Price struct {
	// Above is the prompt length, in tokens, beyond which the price applies to the whole
	// request.
	Above  int     `json:"above,omitempty"`
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// CacheRead is for input read from the prompt cache; 0 means no known discount.
	// CacheWrite and CacheWrite1h are for input written to it, with the short time to live and
	// that of an hour; 0 means the price of input.
	CacheRead    float64 `json:"cache_read,omitempty"`
	CacheWrite   float64 `json:"cache_write,omitempty"`
	CacheWrite1h float64 `json:"cache_write_1h,omitempty"`
}

// Cache describes a provider's prompt cache.
type Cache struct {
	// Match is "breakpoint" if only marked positions are found, "prefix" if the longest
	// common prefix is; empty if there is no cache.
	Match string `json:"match,omitempty"`
	// Minimum is the shortest prefix that is cached, in tokens.
	Minimum int `json:"minimum,omitempty"`
	// TTLs are the times to live, such as "5m", "1h", the default first; none if unknown.
	TTLs []string `json:"ttls,omitempty"`
	// Marks is the largest number of marks in a request, Lookback how many blocks before a
	// mark are searched; 0 is no limit.
	Marks    int `json:"marks,omitempty"`
	Lookback int `json:"lookback,omitempty"`
}

// Life returns the default time to live; 0 if unknown.
func (c Cache) Life() time.Duration {
	if len(c.TTLs) == 0 {
		return 0
	}
	life, _ := time.ParseDuration(c.TTLs[0]) // 0 with an error
	return life
}

// Price returns the price for a prompt of the given length in tokens, and whether it is known.
func (m Model) Price(prompt int) (Price, bool) {
	for _, p := range slices.Backward(m.Prices) {
		if prompt > p.Above || p.Above == 0 {
			return p, true
		}
	}
	return Price{}, false
}

// maxAnswerReserve is what good agents keep free for an answer of a larger limit, in tokens.
const maxAnswerReserve = 20_000

// AnswerReserve is how much is kept free in a window for an answer of at most so many tokens; 0 stands for
// the model's own figures. One that nobody asked for, or that does not fit, gets a third of the window at most.
func (m Model) AnswerReserve(limit, window int) int {
	reserve := min(max(cmp.Or(limit, m.MaxOutput), 0), maxAnswerReserve)
	if window = cmp.Or(window, m.Window); window > 0 && (limit == 0 || limit >= window) {
		reserve = min(reserve, window/3)
	}
	return reserve
}

// WindowBeside is the window to plan requests in beside an answer of so many tokens: Window, or less if MaxInput
// is less than what Window leaves; 0 if the window is unknown.
func (m Model) WindowBeside(answer int) int {
	if m.MaxInput > 0 {
		return min(m.Window, m.MaxInput+answer)
	}
	return m.Window
}

// ModelSet is a table of models. The zero value is empty. A set never changes and is safe for
// concurrent use.
type ModelSet struct {
	rows   []Model
	parts  []nameParts // of the rows' names
	byName map[string]int
}

//go:embed models.json
var builtin []byte

var builtinModels = sync.OnceValue(func() ModelSet {
	s, err := ParseModels(builtin)
	if err != nil {
		panic("token: the embedded model table: " + err.Error())
	}
	return s
})

// Models returns the table of this release. Prices and limits change: each row has its date and
// source, and With replaces rows.
func Models() ModelSet { return builtinModels() }

// ParseModels reads a table in the form of models.json: {"models": [...]} with the fields of
// Model. Unknown fields, duplicate names, negative numbers and unknown counters are errors that
// name the row.
func ParseModels(data []byte) (ModelSet, error) {
	var file struct {
		Comment string  `json:"comment"`
		Date    string  `json:"date"` // when it was written
		Models  []Model `json:"models"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return ModelSet{}, fmt.Errorf("model table: after byte %d: %w", d.InputOffset(), err)
	}
	return newModelSet(file.Models)
}

func newModelSet(rows []Model) (ModelSet, error) {
	s := ModelSet{rows: rows, byName: map[string]int{}}
	for i, m := range rows {
		s.parts = append(s.parts, splitName(strings.ToLower(m.Name)))
		if err := m.check(); err != nil {
			return ModelSet{}, fmt.Errorf("model table: row %d (%s): %w", i, m.Name, err)
		}
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			key := strings.ToLower(name)
			if j, taken := s.byName[key]; taken {
				return ModelSet{}, fmt.Errorf("model table: row %d (%s): the name %q is taken by row %d (%s)", i, m.Name, name, j, rows[j].Name)
			}
			s.byName[key] = i
		}
	}
	return s, nil
}

func (m Model) check() error {
	if m.Name == "" {
		return errors.New("has no name")
	}
	for name, n := range map[string]int{"window": m.Window, "max_input": m.MaxInput, "max_output": m.MaxOutput, "cache.minimum": m.Cache.Minimum} {
		if n < 0 {
			return fmt.Errorf("%s is negative", name)
		}
	}
	above := -1
	for _, p := range m.Prices {
		if p.Above <= above {
			return errors.New("prices do not go up by prompt length")
		}
		above = p.Above
		if min(p.Input, p.Output, p.CacheRead, p.CacheWrite, p.CacheWrite1h) < 0 {
			return errors.New("has a negative price")
		}
	}
	_, err := ForModel(m)
	return err
}

// All returns a copy of the rows in the order of the table.
func (s ModelSet) All() []Model { return slices.Clone(s.rows) }

// With returns the table with the rows of other, which replace rows of the same name.
func (s ModelSet) With(other ModelSet) (ModelSet, error) {
	rows := slices.Clone(s.rows)
	for _, m := range other.rows {
		at := slices.IndexFunc(rows, func(r Model) bool { return strings.EqualFold(r.Name, m.Name) })
		if at >= 0 {
			rows[at] = m
		} else {
			rows = append(rows, m)
		}
	}
	return newModelSet(rows)
}

// Find returns a model by its name or an alias, in any case, also with what clouds and gateways
// add: a provider in front ("anthropic/", "us.anthropic.", "models/"), a version, date or variant
// behind ("-20250929", "@20250929", "-v1:0", ":thinking", "[1m]", "-latest"). The error wraps
// ErrUnknownModel and lists the nearest names.
func (s ModelSet) Find(name string) (Model, error) {
	for _, form := range forms(name) {
		if i, ok := s.byName[form]; ok {
			return s.rows[i], nil
		}
	}
	return Model{}, &unknownModel{strings.Clone(name), s}
}

// unknownModel finds the nearest names only when it is printed: that takes longer than all other
// work for a request, and most callers ignore the error.
type unknownModel struct {
	name string
	set  ModelSet
}

func (e *unknownModel) Error() string {
	return fmt.Sprintf("model %q, nearest are %s: %v", e.name, strings.Join(e.set.nearest(e.name, 3), ", "), ErrUnknownModel)
}

func (e *unknownModel) Unwrap() error { return ErrUnknownModel }

// forms returns the names under which a model may be in the table: the given one, and then with
// more and more prefixes and suffixes removed.
func forms(name string) []string {
	name = strings.ToLower(strings.TrimSpace(name))
	list := []string{name}
	add := func(s string) {
		if s != "" && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	add(strings.TrimSuffix(name, "[1m]"))
	last := list[len(list)-1]
	if i := strings.LastIndexByte(last, '/'); i >= 0 {
		add(last[i+1:])
	}
	last = list[len(list)-1]
	// Bedrock: region, vendor and model with points between, "-v1:0" behind.
	for _, vendor := range []string{"anthropic.", "openai.", "meta.", "deepseek.", "qwen.", "mistral.", "moonshot.", "zai."} {
		if i := strings.Index(last, vendor); i == 0 || i > 0 && last[i-1] == '.' {
			add(last[i+len(vendor):])
			break
		}
	}
	for range 4 { // each suffix at most once
		last = list[len(list)-1]
		add(withoutSuffix(last))
		if list[len(list)-1] == last {
			break
		}
	}
	// Some gateways write the version of a Claude model with a point.
	last = list[len(list)-1]
	if strings.HasPrefix(last, "claude") {
		add(strings.ReplaceAll(last, ".", "-"))
	}
	return list
}

// withoutSuffix cuts one date, version or variant off the end of a name.
func withoutSuffix(s string) string {
	if i := strings.LastIndexAny(s, "@:"); i > 0 {
		return s[:i]
	}
	for _, suffix := range []string{"-latest", "-preview", "-exp"} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			return rest
		}
	}
	i := strings.LastIndexByte(s, '-')
	if i <= 0 {
		return s
	}
	tail := s[i+1:]
	switch {
	case isDigits(tail) && len(tail) == 8: // -20250929
		return s[:i]
	case len(tail) == 2 && tail[0] == 'v' && isDigits(tail[1:]): // -v1
		return s[:i]
	case isDigits(tail) && len(tail) == 2 && i >= 8 && s[i-3] == '-' && s[i-8] == '-' && isDigits(s[i-7:i-3]) && isDigits(s[i-2:i]): // -2024-08-06
		return s[:i-8]
	}
	return s
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// nearest returns the n names of the table that differ least from the name.
func (s ModelSet) nearest(name string, n int) []string {
	all := forms(name)
	var known []string
	for _, m := range s.rows {
		known = append(known, m.Name)
	}
	if names := suggest.Names(all[len(all)-1], known, n); names != nil {
		return names
	}
	return []string{"none"}
}
