// Command licences writes the licences of all that is in the program, which must go with it:
//
//	go run ./lab/licences FILE
//
// It fails where a module has no licence file, one that is not known, or one that may not be in
// the program. Run it in the folder of the program's module.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: licences FILE")
	}
	// The vocabularies of package token are made from those of the second.
	all, err := modules("./cmd/palimpsest", "github.com/tiktoken-go/tokenizer/codec")
	if err != nil {
		return err
	}
	text, err := document(all)
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], text, 0o644)
}

// module is one that the program has packages of.
type module struct {
	path, version, dir string
	packages           []string // their folders
}

// modules are those of packages on all systems that there are releases for.
func modules(packages ...string) ([]module, error) {
	found := map[string]*module{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		list := exec.Command("go", append([]string{"list", "-deps", "-f",
			"{{if .Standard}}{{else if .Module.Main}}{{else}}{{.Module.Path}}\t{{.Module.Version}}\t{{.Module.Dir}}\t{{.Dir}}{{end}}"}, packages...)...)
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		list.Stderr = os.Stderr
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", system, err)
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) != 4 {
				continue
			}
			m := found[f[0]]
			if m == nil {
				m = &module{path: f[0], version: f[1], dir: f[2]}
				found[f[0]] = m
			}
			m.packages = append(m.packages, f[3])
		}
	}
	root, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, err
	}
	goroot, version, _ := strings.Cut(strings.TrimSpace(string(root)), "\n")
	found["std"] = &module{path: "std", version: version, dir: goroot}
	return slices.SortedFunc(func(yield func(module) bool) {
		for m := range maps.Values(found) {
			if !yield(*m) {
				return
			}
		}
	}, func(a, b module) int { return cmp.Compare(a.path, b.path) }), nil
}

// A logo of a project is not in the program.
var noLicence = regexp.MustCompile(`(?i)\.go$|-logo$`)

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|notice|patents)([.-]|$)`)

// files are the licence files of a module: in its root, in the folders of the packages that are
// used, and between.
func (m module) files() ([]string, error) {
	dirs := map[string]bool{m.dir: true}
	for _, dir := range m.packages {
		for ; len(dir) > len(m.dir) && !dirs[dir]; dir = filepath.Dir(dir) {
			dirs[dir] = true
		}
	}
	var out []string
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && licenceFile.MatchString(e.Name()) && !noLicence.MatchString(e.Name()) {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s %s: %w", m.path, m.version, fs.ErrNotExist)
	}
	return out, nil
}

// known are words of each licence, and whether what stands under it may be in the program.
var known = []struct {
	name, words string
	barred      bool
}{
	{name: "Apache-2.0", words: "Apache License Version 2.0"},
	{name: "MIT", words: "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{name: "BSD", words: "Redistribution and use in source and binary forms, with or without modification, are permitted"},
	{name: "ISC", words: "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
	{name: "ISC", words: "Permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted"},
	{name: "MPL-2.0", words: "Mozilla Public License Version 2.0"}, // for files that we do not change
	{name: "MPL-2.0", words: "Mozilla Public License, version 2.0"},
	{name: "CC0-1.0", words: "CC0 1.0 Universal"},
	{name: "public domain", words: "This is free and unencumbered software released into the public domain"},
	{name: "public domain", words: "SQLite Is Public Domain"},
	{name: "public domain", words: "The author disclaims copyright to this source code"},
	{name: "GPL", words: "GNU GENERAL PUBLIC LICENSE Version", barred: true},
	{name: "AGPL", words: "GNU AFFERO GENERAL PUBLIC LICENSE Version 3", barred: true},
	{name: "LGPL", words: "GNU LESSER GENERAL PUBLIC LICENSE Version", barred: true},
	{name: "SSPL", words: "Server Side Public License", barred: true},
	{name: "BUSL", words: "Business Source License", barred: true},
	{name: "Commons Clause", words: "Commons Clause", barred: true},
	{name: "CC-BY-NC", words: "NonCommercial", barred: true},
}

// licences are the names of the licences in a text.
func licences(text string) ([]string, error) {
	text = plain(text)
	var names []string
	for _, k := range known {
		switch {
		case !strings.Contains(text, plain(k.words)):
		case k.barred && !slices.Contains(names, "MPL-2.0"): // which names others as ones it may be joined with
			return nil, fmt.Errorf("%s may not be in the program", k.name)
		case !k.barred && !slices.Contains(names, k.name):
			names = append(names, k.name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("not a known licence")
	}
	return names, nil
}

// plain is a text without what differs between copies of a licence: case, lines, marks of comments.
func plain(text string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n*/#", r) }), " "))
}

// document lists the modules with their licences, and then each text once.
func document(all []module) ([]byte, error) {
	var list, texts bytes.Buffer
	list.WriteString("What is in the program besides its own code, and under which licences.\n\n")
	at := map[string]int{}
	var problems []error
	for _, m := range all {
		files, err := m.files()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		var names, numbers []string
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
			if base := strings.ToLower(filepath.Base(path)); !strings.HasPrefix(base, "notice") && !strings.HasPrefix(base, "patents") {
				found, err := licences(text)
				if err != nil {
					problems = append(problems, fmt.Errorf("%s %s: %s: %w", m.path, m.version, filepath.Base(path), err))
				}
				names = append(names, found...)
			}
			if at[text] == 0 {
				at[text] = len(at) + 1
				fmt.Fprintf(&texts, "\n%s\n[%d]\n\n%s\n", strings.Repeat("-", 78), at[text], text)
			}
			numbers = append(numbers, fmt.Sprintf("[%d]", at[text]))
		}
		slices.Sort(names)
		fmt.Fprintf(&list, "%s %s: %s %s\n", m.path, m.version, strings.Join(slices.Compact(names), ", "), strings.Join(numbers, ""))
	}
	return append(list.Bytes(), texts.Bytes()...), errors.Join(problems...)
}
