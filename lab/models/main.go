// Command models writes the table of models anew from the catalogues that agents ship:
// which models there are, how large their windows are, and what they cost. What the
// catalogues do not have (cache rules, formulas for images, counters) stays as it is in
// the table, and a new model takes it from the model of its family that is nearest.
//
//	npm install --prefix FOLDER --ignore-scripts @openai/codex opencode-ai @earendil-works/pi-ai
//	go run ./lab/models FOLDER token/models.json
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/token"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: models FOLDER-WITH-node_modules TABLE.json")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], time.Now().UTC().Format(time.DateOnly), os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1)
	}
}

// run reads the catalogues in a folder, and writes the table with them. What changed is
// told.
func run(folder, table, date string, told io.Writer) error {
	data, err := os.ReadFile(table)
	if err != nil {
		return err
	}
	known, err := token.ParseModels(data)
	if err != nil {
		return fmt.Errorf("%s: %w", table, err)
	}
	found, err := readCatalogues(folder)
	if err != nil {
		return err
	}
	rows, err := merge(known, found, date, told)
	if err != nil {
		return err
	}
	return os.WriteFile(table, encode(rows, date), 0o644)
}

// listed is a model of a catalogue.
type listed struct {
	token.Model
	released string // a date; empty if unknown
}

// firstRelease is the date from which models get rows: older ones have them, or are gone.
const firstRelease = "2025-06"

// left out are models that no agent works with.
var leftOut = []string{"image", "audio", "realtime", "tts", "embed", "transcribe", "live", "search", "deep-research", "moderation", "computer-use", "robotics", "customtools", "latest", "nano-banana", "omni", "-tee", "chat-", "labs-", "zai-"}

// merge are the rows of the table with those of the catalogues. Of several catalogues the
// first that has a model counts.
func merge(known token.ModelSet, found []listed, date string, told io.Writer) ([]token.Model, error) {
	rows, seen, added := known.All(), map[string]bool{}, []token.Model(nil)
	for _, m := range largest(found) {
		key := strings.ToLower(m.Name)
		if seen[key] || m.Window == 0 || slices.ContainsFunc(leftOut, func(s string) bool { return strings.Contains(key, s) }) {
			continue
		}
		if at := slices.IndexFunc(rows, func(r token.Model) bool { return strings.EqualFold(r.Name, m.Name) }); at >= 0 {
			if rows[at].Provider != m.Provider {
				continue
			}
			seen[key] = true
			if updated := withFigures(rows[at], m.Model, date); !sameFigures(rows[at], updated) {
				fmt.Fprintf(told, "changed: %s\n", m.Name)
				rows[at] = updated
			}
			continue
		}
		if old := m.released != "" && m.released < firstRelease; old {
			seen[key] = true // other catalogues do not say how old it is
			continue
		}
		if _, err := known.Find(m.Name); err == nil {
			continue // a dated or decorated name of a row
		}
		like, err := known.Like(m.Name)
		switch {
		case err != nil:
			like = token.Model{Counter: "o200k", Estimated: true}
		case like.Provider != m.Provider:
			continue // another's model
		}
		seen[key] = true
		like.Estimated = like.Counter != "o200k" || m.Provider != "openai"
		row := like
		row.Name, row.Provider, row.Aliases, row.Prices = m.Name, m.Provider, nil, nil
		row.Window, row.MaxInput, row.MaxOutput = 0, 0, 0
		if m.Window == like.MaxInput && m.MaxOutput == like.MaxOutput {
			m.Window, m.MaxInput = like.Window, like.MaxInput // a catalogue that gives the input for the window
		}
		fmt.Fprintf(told, "new: %s\n", m.Name)
		added = append(added, withFigures(row, m.Model, date))
	}
	slices.SortFunc(added, func(a, b token.Model) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Name, b.Name))
	})
	if len(seen) == 0 {
		return nil, fmt.Errorf("no catalogue holds a model: did their form change?")
	}
	return append(rows, added...), nil
}

// largest are the models with the largest window that any catalogue gives, where none
// limits the input: agents use a part of some.
func largest(found []listed) []listed {
	windows := map[string]int{}
	for _, m := range found {
		windows[m.Provider+m.Name] = max(windows[m.Provider+m.Name], m.Window)
	}
	out := slices.Clone(found)
	for i, m := range out {
		if m.MaxInput == 0 && m.Provider == "openai" {
			out[i].Window = windows[m.Provider+m.Name]
		}
	}
	return out
}

// withFigures is a row with the figures of a catalogue, as far as it has them.
func withFigures(row, m token.Model, date string) token.Model {
	if m.MaxInput > 0 || row.Window == 0 { // else a window may be given without the answer
		row.Window, row.MaxInput = m.Window, m.MaxInput
		if row.MaxInput >= row.Window {
			row.MaxInput = 0
		}
	}
	row.MaxOutput = min(cmp.Or(m.MaxOutput, row.MaxOutput), row.Window)
	if len(m.Prices) > 0 {
		hour := 0.0
		if len(row.Prices) > 0 {
			hour = row.Prices[0].CacheWrite1h
		}
		if row.Provider == "anthropic" && (hour > 0 || len(row.Prices) == 0) {
			m.Prices = slices.Clone(m.Prices)
			for i := range m.Prices {
				m.Prices[i].CacheWrite1h = 2 * m.Prices[i].Input
			}
		}
		row.Prices = m.Prices
	}
	row.Date, row.Source = date, m.Source
	return row
}

func sameFigures(a, b token.Model) bool {
	return a.Window == b.Window && a.MaxInput == b.MaxInput && a.MaxOutput == b.MaxOutput && slices.Equal(a.Prices, b.Prices)
}

const comment = "Limits, prices in US dollars per million tokens, and cache rules of models, written by lab/models. A number that is not known is left out. Replace rows with a file of the same form."

// encode writes the table, a line for each row.
func encode(rows []token.Model, date string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"comment\": %q,\n  \"date\": %q,\n  \"models\": [\n", comment, date)
	for i, row := range rows {
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		_ = e.Encode(row) // a row always encodes
		b.WriteString("    " + strings.TrimSpace(line.String()))
		if i < len(rows)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("  ]\n}\n")
	return b.Bytes()
}
