// Package standing learns the table of package internal/standing from sentences that were
// written and labelled for it, and measures how well the table ranks.
package standing

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Labelled is a sentence of a person and whether it stands.
type Labelled struct {
	Lang, Domain string
	// Kind is the letter of the label, or 0 where only Stands is known.
	Kind         byte
	Text, Before string
	Stands       bool
	// File is the file's name without its ending; Hand is who wrote it, the part of that
	// before the first _.
	File, Hand string
}

// letters are those of labels, and kinds what they mean. Capitals stand.
const letters = "RBPDVrqfxpc"

var kinds = map[byte]string{
	'R': "rule", 'B': "ban", 'P': "preference", 'D': "decision", 'V': "taken back",
	'r': "request", 'q': "question", 'f': "fact", 'x': "of others", 'p': "report", 'c': "talk",
}

// ReadFolder reads the sentences of all *.txt files of a folder, in the order of their names.
func ReadFolder(dir string) ([]Labelled, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s: no *.txt with sentences in it (%w)", dir, os.ErrNotExist)
	}
	slices.Sort(files)
	var all []Labelled
	for _, f := range files {
		some, err := readFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func readFile(name string) ([]Labelled, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	s := Labelled{File: strings.TrimSuffix(filepath.Base(name), ".txt")}
	s.Hand, _, _ = strings.Cut(s.File, "_")
	var all []Labelled
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		if head, ok := strings.CutPrefix(line, "@"); ok {
			s.Lang, s.Domain, _ = strings.Cut(head, " ")
			continue
		}
		letter, rest, _ := strings.Cut(line, " ")
		if len(letter) != 1 || kinds[letter[0]] == "" || rest == "" || s.Lang == "" || !utf8.ValidString(line) {
			return nil, fmt.Errorf("%s:%d: want a line @LANG DOMAIN first, then a letter of %s and a sentence: %.40q", name, n, letters, line)
		}
		s.Kind, s.Stands = letter[0], letter[0] < 'a'
		s.Text, s.Before, _ = strings.Cut(rest, " ~~ ")
		all = append(all, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// ReadLines reads a file of lines {"lang", "before", "text", "stands"}, of which before may be
// missing.
func ReadLines(name string) ([]Labelled, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	var all []Labelled
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var l struct {
			Lang, Before, Text string
			Stands             *bool
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s:%d: want an object with lang, before, text and stands: %w", name, n, err)
		}
		if l.Text == "" || l.Stands == nil {
			return nil, fmt.Errorf("%s:%d: want text and stands (true or false)", name, n)
		}
		all = append(all, Labelled{Lang: l.Lang, Before: l.Before, Text: l.Text, Stands: *l.Stands})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no sentences in it", name)
	}
	return all, nil
}
