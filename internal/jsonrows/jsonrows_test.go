package jsonrows

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

const booking = `{"id": "B-77120", "from": "Bremen", "price": 181.50, "contact": {"mail": "a@example.com", "phone": null},
 "legs": [{"train": "IC2217", "day": "2031-03-04", "seats": [11, 12]}, {"train": "RE5", "day": "2031-03-05", "seats": []}],
 "cards": {"card_9918": {"brand": "visa", "id": "card_9918", "history": [{"amount": 12}, {"amount": 40}]}}}`

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, text string
		tables     bool
		want       []string
	}{
		{"records", booking, false, []string{
			"id B-77120, from Bremen, price 181.50, contact (mail a@example.com, phone null)",
			"legs: train IC2217, day 2031-03-04, seats [11, 12]",
			"legs: train RE5, day 2031-03-05, seats []",
			"cards card_9918: brand visa, id card_9918",
			"cards card_9918 history: amount 12",
			"cards card_9918 history: amount 40",
		}},
		{"tables", `[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3}]`, true, []string{"a 1, b x", "2, y", "a 3"}},
		{"a table with rows between", `[{"a": 1, "b": "x", "in": [{"c": 5, "d": 6}, {"c": 7, "d": 8}]}, {"a": 2, "b": "y"}, {"a": 3, "b": "z"}]`, true, []string{"a 1, b x", "in: c 5, d 6", "in: 7, 8", "a 2, b y", "3, z"}},
		{"plain list", `["one", 2, true]`, false, []string{"one, 2, true"}},
		{"no document", "plain text", false, nil},
		{"broken", `{"a": `, false, nil},
		{"empty", `{}`, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Lines(nil, c.text, c.tables); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// FuzzLines holds that nothing panics and that no value of a document is lost.
func FuzzLines(f *testing.F) {
	f.Add(booking, true)
	f.Add(`[[[["deep"]]], {"a": {"b": {"c": [1, {"d": "e"}]}}}]`, false)
	f.Add(strings.Repeat(`[`, 40)+`"x"`+strings.Repeat(`]`, 40), true)
	f.Fuzz(func(t *testing.T, text string, tables bool) {
		lines := Lines(nil, text, tables)
		if lines == nil {
			return
		}
		all := strings.Join(lines, "\n")
		var check func(v gjson.Result, depth int)
		check = func(v gjson.Result, depth int) {
			if v.IsObject() || v.IsArray() {
				if depth > 0 {
					v.ForEach(func(_, m gjson.Result) bool { check(m, depth-1); return true })
				}
				return
			}
			if !strings.Contains(all, strings.TrimSpace(plainText(v))) { // white space at its ends may go
				t.Errorf("%q is not in %q", plainText(v), all)
			}
		}
		check(gjson.Parse(text), 6)
	})
}
