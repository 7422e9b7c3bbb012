package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/token"
)

// providers are those whose own models are read, by the names that catalogues give them.
var providers = []string{"anthropic", "openai", "google", "deepseek", "moonshotai", "xai", "zai", "mistral", "alibaba", "minimax"}

// readCatalogues reads what is installed in a folder: opencode's snapshot of models.dev,
// pi's lists and Codex's. The one with the most figures comes first.
func readCatalogues(folder string) (all []listed, err error) {
	for _, c := range []struct {
		glob string
		read func(path string, data []byte) ([]listed, error)
	}{
		{"node_modules/opencode-linux-*/bin/opencode", readOpencode},
		{"node_modules/@earendil-works/pi-ai/dist/providers/data/*.json", readPi},
		{"node_modules/@openai/codex-linux-*/vendor/*/bin/codex", readCodex},
	} {
		paths, err := filepath.Glob(filepath.Join(folder, filepath.FromSlash(c.glob)))
		if err != nil || len(paths) == 0 {
			return nil, fmt.Errorf("%s holds no %s: install the packages first", folder, c.glob)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			found, err := c.read(path, data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// readOpencode reads the snapshot of models.dev in opencode's binary: for each provider an
// object of JavaScript.
func readOpencode(_ string, data []byte) (all []listed, err error) {
	for _, provider := range providers {
		at := bytes.Index(data, []byte(`{id:"`+provider+`",env:[`))
		if at < 0 {
			continue
		}
		object, err := literal(data[at:])
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", provider, err)
		}
		gjson.Get(object, "models").ForEach(func(id, m gjson.Result) bool {
			if m.Get("tool_call").Bool() {
				all = append(all, listed{token.Model{
					Name: id.Str, Provider: provider,
					Window: int(m.Get("limit.context").Int()), MaxInput: int(m.Get("limit.input").Int()), MaxOutput: int(m.Get("limit.output").Int()),
					Prices: prices(m.Get("cost"), "cache_read", "cache_write", "tier.size"),
					Source: "models.dev providers/" + provider + ", as opencode ships it",
				}, m.Get("release_date").Str})
			}
			return true
		})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it holds no snapshot of models.dev in the known form")
	}
	return all, nil
}

// readPi reads a provider's list of pi.
func readPi(path string, data []byte) (all []listed, err error) {
	provider := strings.TrimSuffix(filepath.Base(path), ".json")
	if !strings.Contains(" "+strings.Join(providers, " ")+" ", " "+provider+" ") {
		return nil, nil
	}
	gjson.ParseBytes(data).ForEach(func(_, byAPI gjson.Result) bool {
		byAPI.ForEach(func(_, m gjson.Result) bool {
			if m.Get("type").Str == "chat" {
				all = append(all, listed{Model: token.Model{
					Name: m.Get("id").Str, Provider: provider,
					Window: int(m.Get("contextWindow").Int()), MaxOutput: int(m.Get("maxTokens").Int()),
					Prices: prices(m.Get("cost"), "cacheRead", "cacheWrite", "inputTokensAbove"),
					Source: "the list of pi, provider " + provider,
				}})
			}
			return true
		})
		return true
	})
	return all, nil
}

// readCodex reads the list in Codex's binary. It has the part of the window that Codex uses
// unless it is told otherwise, and no prices.
func readCodex(_ string, data []byte) (all []listed, err error) {
	at := regexp.MustCompile(`\{\s*"models": \[\s*\{\s*"slug":`).FindIndex(data)
	if at == nil {
		return nil, fmt.Errorf("it holds no list in the known form")
	}
	var list struct {
		Models []struct {
			Slug    string `json:"slug"`
			Window  int    `json:"context_window"`
			Largest int    `json:"max_context_window"`
		} `json:"models"`
	}
	if err := json.NewDecoder(bytes.NewReader(data[at[0]:])).Decode(&list); err != nil {
		return nil, err
	}
	for _, m := range list.Models {
		if strings.HasPrefix(m.Slug, "gpt-") {
			all = append(all, listed{Model: token.Model{Name: m.Slug, Provider: "openai", Window: max(m.Window, m.Largest), Source: "the list of Codex"}})
		}
	}
	return all, nil
}

// prices reads what a model costs, with the tiers for long prompts.
func prices(cost gjson.Result, read, write, above string) []token.Price {
	price := func(v gjson.Result) token.Price {
		p := token.Price{
			Above: int(v.Get(above).Int()), Input: v.Get("input").Float(), Output: v.Get("output").Float(),
			CacheRead: v.Get(read).Float(), CacheWrite: v.Get(write).Float(),
		}
		if p.CacheWrite <= p.Input {
			p.CacheWrite = 0 // that of input
		}
		return p
	}
	first := price(cost)
	if first.Input <= 0 || first.Output < first.Input {
		return nil
	}
	all := []token.Price{first}
	cost.Get("tiers").ForEach(func(_, tier gjson.Result) bool {
		if p := price(tier); p.Above > all[len(all)-1].Above && p.Input > 0 {
			all = append(all, p)
		}
		return true
	})
	return all
}
