package main

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/token"
)

// TestRows: the text of every row stands once in the product.
func TestRows(t *testing.T) {
	t.Chdir("..")
	replace, err := patch(t.TempDir(), rows)
	if err != nil {
		t.Fatal(err)
	}
	if len(replace) < 10 {
		t.Errorf("%d files are replaced", len(replace))
	}
	wrong := append(rows[:1:1], row{name: "none", file: rows[0].file, old: "no such text"})
	if _, err := patch(t.TempDir(), wrong); err == nil {
		t.Error("a text that does not stand in the file is no error")
	}
}

// TestNoSection: where no prompt has the section whose noise is measured, that is an error and not a noise of 0.
func TestNoSection(t *testing.T) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&measuring{counter: counter}).recall(t.Context(), &figures{}); err == nil {
		t.Error("no error")
	}
}
