package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLicences(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
		err        string
	}{
		{"over lines, in a comment", "/*\n * Permission is hereby granted, free\n * of charge, to any person obtaining a copy\n */", []string{"MIT"}, ""},
		{"two in one file", "apache license\n  Version 2.0\n\nRedistribution and use in source and binary forms, with or without modification, are permitted", []string{"Apache-2.0", "BSD"}, ""},
		{"one that names another", "Mozilla Public License Version 2.0 ... means either the GNU General Public License Version 2.0", []string{"MPL-2.0"}, ""},
		{"barred", "GNU GENERAL PUBLIC LICENSE\nVersion 3", nil, "GPL may not be"},
		{"with a condition", "Permission is hereby granted, free of charge, to any person obtaining a copy. \"Commons Clause\" License Condition", nil, "Commons Clause may not be"},
		{"none", "All rights reserved.", nil, "not a known licence"},
		{"nothing", "", nil, "not a known licence"},
	} {
		got, err := licences(c.text)
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

// TestDocument: what lies in the folder of a package counts too, each text stands once, and a module
// without a licence is an error.
func TestDocument(t *testing.T) {
	const mit = "Permission is hereby granted, free of charge, to any person obtaining a copy\n"
	dir := t.TempDir()
	for path, text := range map[string]string{"a/LICENSE": mit, "a/in/side/COPYING.txt": "GNU AFFERO GENERAL PUBLIC LICENSE Version 3", "b/Licence.md": mit, "b/NOTICE": "made by b", "c/README": "none", "b/LICENSE-LOGO": "a picture"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	of := func(name string, packages ...string) module {
		return module{path: "example.com/" + name, version: "v1.0.0", dir: filepath.Join(dir, name), packages: packages}
	}
	text, err := document([]module{of("a"), of("b")})
	if err != nil || strings.Count(string(text), mit) != 1 || !strings.Contains(string(text), "example.com/b v1.0.0: MIT [1][2]\n") || !strings.Contains(string(text), "made by b") {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := document([]module{of("a", filepath.Join(dir, "a/in/side"))}); err == nil || !strings.Contains(err.Error(), "example.com/a v1.0.0: COPYING.txt: AGPL") {
		t.Error(err)
	}
	if _, err := document([]module{of("c")}); err == nil {
		t.Error("a module without a licence passes")
	}
}

// TestProgram: all that is in the program may be in it.
func TestProgram(t *testing.T) {
	t.Chdir("../..")
	if err := run([]string{filepath.Join(t.TempDir(), "licences")}); err != nil {
		t.Error(err)
	}
}
