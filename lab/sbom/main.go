// Command sbom writes which modules a program was built from, as a CycloneDX document:
//
//	go run ./lab/sbom PROGRAM FILE
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: sbom PROGRAM FILE")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(document(info), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], append(data, '\n'), 0o644)
}

// bom is the part of CycloneDX 1.6 that is written. It has no time and no serial
// number: the same program gives the same document.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// document lists the program's own module, the modules that are in it, and the
// standard library. The sums of go.sum are properties: CycloneDX has no name for their
// kind of hash.
func document(info *buildinfo.BuildInfo) bom {
	own := of("application", info.Main)
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			own.Properties = append(own.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	out := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{own}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		out.Components = append(out.Components, of("library", *m))
	}
	out.Components = append(out.Components, of("library", debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}))
	return out
}

func of(kind string, m debug.Module) component {
	c := component{Type: kind, Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path}
	if m.Version != "" {
		c.PURL += "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	}
	c.Ref = c.PURL
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}
