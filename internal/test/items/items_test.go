package items_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/internal/test/items"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestItems: each example is sent on as it came, its words can be read, and docs/items.md says what
// the codecs make of it.
func TestItems(t *testing.T) {
	var tables [][]entry // of each API, in their order
	var names []string
	api, bodies := "", items.Bodies()
	for n, item := range items.All {
		if item.API != api {
			api = item.API
			names, tables = append(names, items.Names[api]), append(tables, nil)
		}
		body := fmt.Sprintf(bodies[api], item.At(n))
		p, err := apicodec.For(api).Decode(body)
		if err != nil {
			t.Errorf("%s %s: %v", api, item.Type, err)
			continue
		}
		if out, err := apicodec.For(api).Encode(p); err != nil || string(out) != body {
			t.Errorf("%s %s: sent on as\n%s\nwas\n%s, %v", api, item.Type, out, body, err)
		}
		for _, problem := range apicodec.For(api).Validate([]byte(body)) {
			if unknown := []string{"item-type", "block-type", "content-type", "field"}; slices.Contains(unknown, problem.Rule) {
				t.Errorf("%s %s: check does not know it: %v", api, item.Type, problem)
			}
		}
		words := ""
		for i := range p.Messages {
			words += recall.FullText(&p.Messages[i])
		}
		for _, s := range p.System {
			words += s.Text
		}
		if found := strings.Contains(words, items.Word(n)); found == item.Bare {
			t.Errorf("%s %s: readable %t: %s", api, item.Type, found, words)
		}
		last := &tables[len(tables)-1]
		place, made := item.Place, row(&item, p.Messages, len(p.System) > 0)
		n := slices.IndexFunc(*last, func(e entry) bool { return e.place == place && e.made == made })
		if n < 0 {
			n = len(*last)
			*last = append(*last, entry{place: place, made: made})
		}
		(*last)[n].types = append((*last)[n].types, "`"+item.Type+"`")
	}
	var doc strings.Builder
	for n, table := range tables {
		fmt.Fprintf(&doc, "\n### %s\n\n| place | type | role | part | unit | after a compaction |\n|---|---|---|---|---|---|\n", names[n])
		for _, e := range table {
			fmt.Fprintf(&doc, "| %s | %s | %s |\n", e.place, strings.Join(e.types, ", "), e.made)
		}
	}
	golden.Section(t, "../../../docs/items.md", "items", doc.String()+"\n")
}

// entry is a row of the page: the types of a place of which the same is made.
type entry struct {
	place string
	types []string
	made  string
}

// row says what the codec made of an item.
func row(item *items.Item, messages []thread.Message, system bool) string {
	role, part, unit, after := "system", "instructions", "", "stays"
	for i := range messages {
		m := &messages[i]
		found := holding(item, m.Parts)
		if m.Role == thread.Tool && item.Place == "result" {
			r, _ := m.Result()
			found = holding(item, r.Content)
		}
		if found == nil && (item.Place != "message" || system) {
			continue
		}
		role, part, after = string(m.Role), "text", "goes"
		switch p := found.(type) {
		case thread.Reasoning:
			part = "reasoning"
		case thread.Media:
			part = "media, " + string(p.Type)
		case thread.ToolCall:
			part, unit = "call", "call"
		case thread.ToolResult:
			part, unit = "result", "result"
		case thread.Opaque:
			part = "opaque"
			if p.Call != "" {
				unit = "hosted call"
				if p.Answers {
					unit = "hosted result"
				}
			}
		}
		if unit != "" {
			after = "goes with its unit"
		}
		if m.IsInstruction() {
			after = "stays"
		}
	}
	return fmt.Sprintf("%s | %s | %s | %s", role, part, cmp.Or(unit, "none"), after)
}

// holding is the part that was read from the item, or nil.
func holding(item *items.Item, parts []thread.Part) thread.Part {
	for _, p := range parts {
		v := gjson.Parse(p.From().Raw)
		switch {
		case item.API == wire.Gemini && v.Get(item.Type).Exists(),
			v.Get("type").Str == item.Type,
			item.API == wire.Chat && v.Get("role").Str == item.Type,
			item.API == wire.Responses && item.Place == "part" && v.Get("content.0.type").Str == item.Type,
			item.Type == "message" && v.Get("role").Exists():
			return p
		}
	}
	return nil
}
