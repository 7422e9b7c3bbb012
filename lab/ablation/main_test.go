package main

import "testing"

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
