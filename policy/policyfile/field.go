package policyfile

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// field is one field of a file: its path, what it may be, and the setting that it is read
// into.
//
// The tags of a field, in Settings, in the policies and in what these contain:
//
//	file    the keys down to the field; a field without it is in no file
//	bases   the policies that have it, where not all of its struct do
//	unit, about   what it means
//	range   from..to of a number or a duration; without an end to the largest number.
//	        A whole number may be 0 where that means none: the setting is then -1,
//	        since 0 is its default
//	words   word=value pairs for values outside the range
//	enum    the words that it may be, where its type does not tell; "models" for a
//	        chain of summarizers, "rules" for who judges sentences, "counter" and "embedder" for the name of one
//	not     true: the setting is the opposite of the field
type field struct {
	path                     string // the keys down to it, joined by dots
	unit, about              string
	kind                     kind
	min, max                 float64 // of numbers; of durations in nanoseconds
	words                    []namedValue
	enum                     []string
	isModelChain, isInverted bool
	names                    *nameForm // of a text that names something; else nil
	setting                  reflect.Value
}

// groups are the first keys of files, in the order in which they are written.
var groups = []string{"trigger", "cut", "ladder", "summary", "transcript", "state", "expire", "cache_points", "counter", "summarizer", "rehydration", "retrieval", "tools"}

// fields are those of a file with the base of the settings, each bound to its setting.
func (s *Settings) fields() []field {
	parts := []any{s, &s.Retrieval}
	if s.Base != notesName {
		parts = append(parts, &s.Summarizer)
	}
	if own := baseOf(s.Base).parts; own != nil {
		parts = append(parts, own(s)...)
	} else {
		parts = append(parts, &s.Auto, &s.DisabledRungs)
	}
	if s.HasFavors() || s.Base == "ladder" { // they externalize results
		parts = append(parts, &s.Rehydration)
	}
	var all []field
	for _, part := range parts {
		all = append(all, fieldsOf(s.Base, part)...)
	}
	slices.SortStableFunc(all, func(a, b field) int { return slices.Index(groups, a.group()) - slices.Index(groups, b.group()) })
	return all
}

// HasFavors reports whether the policy can be told what to favor.
func (s *Settings) HasFavors() bool { return s.Base == autoWord || s.Base == notesName }

func (f *field) group() string {
	group, _, _ := strings.Cut(f.path, ".")
	return group
}

// overridesPath is the path of the settings of single tools, by tool name.
const overridesPath = "tools.overrides"

// namedValue is a word that stands for a number.
type namedValue struct {
	text  string
	value float64
}

// kind is what a field holds.
type kind string

const (
	wholeNumber   kind = "a whole number"
	number        kind = "a number"
	boolean       kind = "true or false"
	duration      kind = "a duration such as 90s, 5m or 1h30m"
	text          kind = "a text"
	textList      kind = "a list of texts"
	toolOverrides kind = "fields of tools by their names"
)

var kinds = map[reflect.Kind]kind{
	reflect.Int: wholeNumber, reflect.Float64: number, reflect.Bool: boolean, reflect.Int64: duration, reflect.String: text, reflect.Slice: textList, reflect.Map: toolOverrides,
}

// maxNumber bounds every number.
const maxNumber = 100_000_000

// autoWord leaves something to be decided outside of the file.
const autoWord = "auto"

// enums are the words that values of a type may be.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[policy.Favor]():          policy.Favors(),
	reflect.TypeFor[policy.Trust]():          policy.Trusts(),
	reflect.TypeFor[thread.Role]():           {string(thread.System), string(thread.User), string(thread.Assistant)},
	reflect.TypeFor[thread.Durability]():     {string(thread.Ephemeral), string(thread.Anchoring), string(thread.Replayable), string(thread.NonReplayable)},
	reflect.TypeFor[artifact.Sensitivity]():  {string(artifact.Public), string(artifact.Internal), string(artifact.Confidential), string(artifact.Restricted)},
	reflect.TypeFor[toolpolicy.ReplayCost](): {string(toolpolicy.Free), string(toolpolicy.Cheap), string(toolpolicy.Expensive)},
}

// fieldsOf lists the tagged fields of a struct that files of a base have.
func fieldsOf(base string, at any) []field {
	var all []field
	for tagged, value := range reflect.ValueOf(at).Elem().Fields() {
		tag := tagged.Tag
		bases := strings.Fields(tag.Get("bases"))
		if tag.Get("file") == "" || len(bases) > 0 && !slices.Contains(bases, base) {
			continue
		}
		f := field{
			path: tag.Get("file"), unit: tag.Get("unit"), about: tag.Get("about"),
			kind: kinds[value.Kind()], isInverted: tag.Get("not") == "true", setting: value,
		}
		if low, high, ok := strings.Cut(tag.Get("range"), ".."); ok {
			f.min, f.max = parseQuantity(low), maxNumber
			if high != "" {
				f.max = parseQuantity(high)
			}
		}
		for pair := range strings.FieldsSeq(tag.Get("words")) {
			name, value, _ := strings.Cut(pair, "=")
			f.words = append(f.words, namedValue{name, parseQuantity(value)})
		}
		item := value.Type()
		if f.kind == textList {
			item = item.Elem()
		}
		f.enum = enums[item]
		switch enum := tag.Get("enum"); enum {
		case "":
		case "models":
			f.isModelChain, f.enum = true, []string{Extractive}
		case "rules":
			f.isModelChain, f.enum = true, []string{autoWord, rulesByTable, rulesByModel}
		case "counter":
			f.names = counterForm()
		case "embedder":
			f.names = embedderForm()
		default:
			f.enum = strings.Fields(enum)
		}
		all = append(all, f)
	}
	return all
}

// nameForm says which names a field takes.
type nameForm struct {
	wants   string
	pattern string // of the schema
	takes   func(name string) bool
}

func counterForm() *nameForm {
	names := strings.Join(token.Counters(), ", ")
	return &nameForm{
		wants:   autoWord + ", or a counter: " + names + ", chars/N or bytes/N, with N from 0.1 to 100",
		pattern: `^(` + autoWord + `|` + strings.ReplaceAll(regexp.QuoteMeta(names), ", ", "|") + `|(chars|bytes)/(0\.[1-9][0-9]*|[1-9][0-9]?(\.[0-9]+)?|100))$`,
		takes: func(name string) bool {
			_, err := token.New(name, nil)
			return err == nil || name == autoWord
		},
	}
}

func embedderForm() *nameForm {
	return &nameForm{
		wants: "none, or openai:MODEL", pattern: `^(none|openai:.+)$`,
		takes: func(name string) bool {
			provider, model, _ := strings.Cut(name, ":")
			return name == "none" || provider == "openai" && model != ""
		},
	}
}

// parseQuantity reads a number or a duration of a tag.
func parseQuantity(s string) float64 {
	if d, err := time.ParseDuration(s); err == nil && s != "0" {
		return float64(d)
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("policyfile: %q in a tag", s)) // the tags are constants
	}
	return x
}

// expectation describes what the field takes.
func (f *field) expectation() string {
	switch {
	case f.isModelChain:
		return strings.Join(f.enum, ", ") + ", or a list of models such as anthropic:MODEL or openai:MODEL"
	case f.names != nil:
		return f.names.wants
	case f.kind == textList && f.enum != nil:
		return "a list of " + strings.Join(f.enum, ", ")
	case f.enum != nil:
		return "one of " + strings.Join(f.enum, ", ")
	}
	out := string(f.kind)
	if limits := f.rangeText(); limits != "" {
		if f.kind == duration {
			out += ","
		}
		out += " from " + limits
	}
	for _, w := range f.words {
		out += ", or " + w.text
	}
	return out
}

// rangeText is the range of a number or a duration.
func (f *field) rangeText() string {
	switch f.kind {
	case wholeNumber, number:
		return formatNumber(f.min) + " to " + formatNumber(f.max)
	case duration:
		return formatDuration(time.Duration(f.min)) + " to " + formatDuration(time.Duration(f.max))
	}
	return ""
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// formatDuration writes 2m, where String writes 2m0s.
func formatDuration(d time.Duration) string {
	return strings.ReplaceAll(strings.ReplaceAll(d.String(), "m0s", "m"), "h0m", "h")
}

// set puts a value that was read into the setting: a bool, int64, float64, string or
// []string. It reports whether the field takes it.
func (f *field) set(value any) bool {
	name, _ := value.(string)
	if i := slices.IndexFunc(f.words, func(w namedValue) bool { return w.text == name }); i >= 0 {
		f.setting.Set(reflect.ValueOf(f.words[i].value).Convert(f.setting.Type()))
		return true
	}
	ok := false
	switch f.kind {
	case boolean:
		var b bool
		if b, ok = value.(bool); ok {
			f.setting.SetBool(b != f.isInverted)
		}
	case wholeNumber:
		var n int64
		n, ok = value.(int64)
		ok = ok && f.setInt(n)
	case duration:
		d, err := time.ParseDuration(name)
		ok = err == nil && f.setInt(int64(d))
	case number:
		x, isFloat := value.(float64)
		if n, isInt := value.(int64); isInt {
			x, isFloat = float64(n), true
		}
		if ok = isFloat && x >= f.min && x <= f.max; ok {
			f.setting.SetFloat(x + 0) // no negative zero
		}
	case text:
		if ok = f.accepts(name); ok {
			f.setting.SetString(name)
		}
	case textList:
		list, isList := value.([]string)
		if name != "" {
			list, isList = []string{name}, true
		}
		ok = isList && f.setList(list)
	}
	return ok
}

// setInt sets a number in the range. 0, where that is in the range, becomes -1, since 0 is
// the default of the setting.
func (f *field) setInt(n int64) bool {
	if float64(n) < f.min || float64(n) > f.max {
		return false
	}
	n = cmp.Or(n, -1)
	f.setting.SetInt(n)
	return true
}

// accepts reports whether a text may be a value, or one of a list.
func (f *field) accepts(s string) bool {
	return s != "" && (f.enum == nil || slices.Contains(f.enum, s)) && (f.names == nil || f.names.takes(s))
}

func (f *field) setList(list []string) bool {
	ok := !slices.ContainsFunc(list, func(s string) bool { return !f.accepts(s) })
	if isWord := len(list) == 1 && f.accepts(list[0]); f.isModelChain && !(isWord && list[0] != Extractive) {
		list, ok = parseModels(list)
		if ok && len(list) == 0 {
			f.setting.SetZero() // code alone, as by default
			return slices.Contains(f.enum, Extractive)
		}
	}
	if !ok {
		return false
	}
	f.setting.Set(reflect.MakeSlice(f.setting.Type(), len(list), len(list)))
	for i, s := range list {
		f.setting.Index(i).SetString(s)
	}
	return true
}

// get is the value as a file has it: a bool, int64, float64, string or []string.
func (f *field) get() any {
	v := f.setting
	for _, w := range f.words {
		if v.Equal(reflect.ValueOf(w.value).Convert(v.Type())) {
			return w.text
		}
	}
	switch f.kind {
	case boolean:
		return v.Bool() != f.isInverted
	case wholeNumber:
		return max(v.Int(), int64(f.min))
	case number:
		return v.Float()
	case duration:
		return formatDuration(time.Duration(v.Int()))
	case text:
		return v.String()
	}
	list := make([]string, v.Len())
	for i := range list {
		list[i] = v.Index(i).String()
	}
	if f.isModelChain && len(list) == 0 {
		return []string{Extractive}
	}
	return list
}

// Extractive is the name of the summarizer without a model.
const Extractive = "extractive"

// parseModels checks a chain of summarizers and returns its models.
func parseModels(list []string) ([]string, bool) {
	var out []string
	for i, s := range list {
		provider, name, _ := strings.Cut(s, ":")
		switch {
		case s == Extractive && i == len(list)-1:
		case s == llm.AgentName && !slices.Contains(out, s):
			out = append(out, s)
		case (provider == "anthropic" || provider == "openai") && name != "" && strings.TrimSpace(name) == name && !slices.Contains(out, s):
			out = append(out, s)
		default:
			return nil, false
		}
	}
	return out, len(list) > 0
}

// SetChain sets who writes summaries as a command line says it: "extractive", or models joined by
// commas, which notes does not ask.
func (s *Settings) SetChain(chain string) error {
	models, ok := parseModels(strings.Split(chain, ","))
	switch {
	case !ok:
		return fmt.Errorf("%q: want extractive, agent, anthropic:MODEL or openai:MODEL, or several of them joined by commas, extractive last", chain)
	case len(models) > 0 && s.Base == notesName:
		return fmt.Errorf("%q: the policy notes asks no model", chain)
	}
	s.Summarizer.Use = models
	return nil
}
