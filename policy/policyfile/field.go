package policyfile

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// field is one row of the table: a setting, where it stands in a file, and what
// it may be.
type field struct {
	// path are the keys down to the field, joined by dots; bases are the policies
	// that have it, nil for all.
	path  string
	bases []string
	// unit, about and source say what it means: a seed's requirement or a
	// document.
	unit, about, source string
	// min and max are the range of numbers; those of durations are seconds.
	min, max float64
	// words stand for a value outside the range.
	words []word
	// enum are the words that a text, or each text of a list, may be. model asks
	// for names of models instead.
	enum  []string
	model bool
	// not: the setting is the opposite of the field. negative: a 0 in the file is
	// a negative number in the setting, where 0 is the default.
	not, negative bool
	// at points into the settings: *int, *float64, *bool, *time.Duration, or a
	// pointer to a text or a list of texts.
	at func(*Settings) any
}

// word stands for a number.
type word struct {
	text  string
	value float64
}

// of reports whether a policy has the field.
func (f *field) of(base string) bool { return f.bases == nil || slices.Contains(f.bases, base) }

// kind is what a field holds.
type kind string

const (
	whole    kind = "a whole number"
	number   kind = "a number"
	truth    kind = "true or false"
	duration kind = "a duration such as 90s, 5m or 1h30m"
	text     kind = "a text"
	texts    kind = "a list of texts"
)

func kindOf(at any) kind {
	if _, ok := at.(*time.Duration); ok {
		return duration
	}
	switch reflect.TypeOf(at).Elem().Kind() {
	case reflect.Int:
		return whole
	case reflect.Float64:
		return number
	case reflect.Bool:
		return truth
	case reflect.Slice:
		return texts
	}
	return text
}

// want says what the field takes.
func (f *field) want(k kind) string {
	switch {
	case f.model:
		return "extractive, or a list of models such as anthropic:MODEL or openai:MODEL"
	case k == texts && f.enum != nil:
		return "a list of " + strings.Join(f.enum, ", ")
	case f.enum != nil:
		return "one of " + strings.Join(f.enum, ", ")
	}
	out := string(k)
	if limits := f.limits(k); limits != "" {
		if k == duration {
			out += ","
		}
		out += " from " + limits
	}
	for _, w := range f.words {
		out += ", or " + w.text
	}
	return out
}

// limits is the range of a number or a duration.
func (f *field) limits(k kind) string {
	switch k {
	case whole, number:
		return plain(f.min) + " to " + plain(f.max)
	case duration:
		return short(seconds(f.min)) + " to " + short(seconds(f.max))
	}
	return ""
}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// short writes 2m, where String writes 2m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func seconds(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }

// set puts a value that was read into the setting: a bool, int64, float64,
// string or []string. It reports whether the field takes it.
func (f *field) set(at, value any) bool {
	k := kindOf(at)
	to := reflect.ValueOf(at).Elem()
	if name, ok := value.(string); ok && (k == whole || k == number || k == duration) {
		for _, w := range f.words {
			if w.text == name {
				if k == number {
					to.SetFloat(w.value)
				} else {
					to.SetInt(int64(w.value))
				}
				return true
			}
		}
	}
	switch k {
	case truth:
		b, ok := value.(bool)
		if ok {
			to.SetBool(b != f.not)
		}
		return ok
	case whole:
		n, ok := value.(int64)
		if !ok || float64(n) < f.min || float64(n) > f.max {
			return false
		}
		if f.negative && n == 0 {
			n = -1
		}
		to.SetInt(n)
		return true
	case number:
		x, ok := value.(float64)
		if n, isInt := value.(int64); isInt {
			x, ok = float64(n), true
		}
		if !ok || !(x >= f.min && x <= f.max) {
			return false
		}
		to.SetFloat(x + 0) // no negative zero
		return true
	case duration:
		s, _ := value.(string)
		d, err := time.ParseDuration(s)
		if err != nil || d < seconds(f.min) || d > seconds(f.max) {
			return false
		}
		to.SetInt(int64(d))
		return true
	case text:
		s, ok := value.(string)
		if !ok || s == "" || f.enum != nil && !slices.Contains(f.enum, s) {
			return false
		}
		to.SetString(s)
		return true
	}
	if s, ok := value.(string); ok {
		value = []string{s}
	}
	list, ok := value.([]string)
	if !ok {
		return false
	}
	if f.model {
		if list, ok = models(list); !ok {
			return false
		}
	}
	if f.model && len(list) == 0 {
		to.SetZero() // code alone, as by default
		return true
	}
	out := reflect.MakeSlice(to.Type(), len(list), len(list))
	for i, s := range list {
		if s == "" || f.enum != nil && !slices.Contains(f.enum, s) {
			return false
		}
		out.Index(i).SetString(s)
	}
	to.Set(out)
	return true
}

// get is the value as it stands in a file: a bool, int64, float64, string or
// []string.
func (f *field) get(at any) any {
	v := reflect.ValueOf(at).Elem()
	k := kindOf(at)
	for _, w := range f.words {
		if k == number && v.Float() == w.value || (k == whole || k == duration) && float64(v.Int()) == w.value {
			return w.text
		}
	}
	switch k {
	case truth:
		return v.Bool() != f.not
	case whole:
		return max(v.Int(), int64(math.Ceil(f.min)))
	case number:
		return v.Float()
	case duration:
		return short(time.Duration(v.Int()))
	case text:
		return v.String()
	}
	list := make([]string, v.Len())
	for i := range list {
		list[i] = v.Index(i).String()
	}
	if f.model && len(list) == 0 {
		return []string{Extractive}
	}
	return list
}

// written is a value as YAML.
func written(value any) string {
	switch v := value.(type) {
	case string:
		if plainText.MatchString(v) && !slices.Contains(keywords, strings.ToLower(v)) {
			return v
		}
		return rawjson.Quote(v) // what JSON writes, YAML reads
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			out[i] = written(s)
		}
		return "[" + strings.Join(out, ", ") + "]"
	case float64:
		return plain(v)
	}
	return fmt.Sprint(value)
}

// plainText are names and durations, which need no quotes wherever they stand,
// keywords what YAML, of any version, would read as something else.
var (
	plainText = regexp.MustCompile(`^([A-Za-z][\w./-]*(:[\w./:-]*[\w./-])?|([0-9]+(\.[0-9]+)?(ns|us|ms|[smh]))+)$`)
	keywords  = []string{"true", "false", "yes", "no", "on", "y", "n", "null", "nan", "inf"}
)

// Extractive is the summarizer without a model.
const Extractive = "extractive"

// models checks a chain of summarizers and returns the models of it.
func models(list []string) ([]string, bool) {
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

// ParseChain reads a chain of summarizers as it is written on a command line:
// "extractive", or models joined by commas.
func ParseChain(s string) ([]string, error) {
	chain, ok := models(strings.Split(s, ","))
	if !ok {
		return nil, fmt.Errorf("%q: want extractive, agent, anthropic:MODEL or openai:MODEL, or several of them joined by commas, extractive last", s)
	}
	return chain, nil
}
