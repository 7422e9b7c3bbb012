package main

import (
	"bytes"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/token"
)

// catalogues are the files of a folder with small catalogues in the forms of opencode, pi and Codex:
// the first and the last stand between other bytes of a program.
var catalogues = map[string]string{
	"node_modules/opencode-linux-x64/bin/opencode": "\x7fELF" + `var a={id:"openai",env:["K"],name:'Say "hi"',models:{` +
		`"lark-3":{id:"lark-3",tool_call:!0,release_date:"2026-05-01",description:"It\q flies",cost:{input:2,output:8,cache_read:.5,tiers:[{input:4,output:16,cache_read:1,tier:{size:2e5}}]},limit:{context:4e5,input:272e3,output:128e3}},` +
		`"lark-1":{id:"lark-1",tool_call:!0,release_date:"2024-01-01",limit:{context:8000,output:2000}},` +
		`"lark-2":{id:"lark-2",tool_call:!0,release_date:"2025-09-01",cost:{input:2,output:4},limit:{context:300000,output:64000}},` +
		`"lark-image":{id:"lark-image",tool_call:!0,release_date:"2026-05-01",limit:{context:4000,output:100}},` +
		`"lark-mute":{id:"lark-mute",tool_call:!1,release_date:"2026-05-01",limit:{context:4000,output:100}}}},` +
		`b={id:"anthropic",env:[],models:{"heron-2":{id:"heron-2",tool_call:!0,release_date:"2026-05-01",cost:{input:5,output:25,cache_read:.5,cache_write:6.25},limit:{context:1e6,output:32e3}}}};`,
	"node_modules/@earendil-works/pi-ai/dist/providers/data/openai.json": `{"chat":{
		"lark-2":{"id":"lark-2","type":"chat","contextWindow":7,"maxTokens":7},
		"lark-4":{"id":"lark-4","type":"chat","contextWindow":200000,"maxTokens":50000},
		"lark-draw":{"id":"lark-draw","type":"image","contextWindow":4000,"maxTokens":100}}}`,
	"node_modules/@earendil-works/pi-ai/dist/providers/data/somebody.json": `{"chat":{"lark-9":{"id":"lark-9","type":"chat","contextWindow":1,"maxTokens":1}}}`,
	"node_modules/@openai/codex-linux-x64/vendor/x64/bin/codex":            "\x7fELF" + `{"models": [{"slug":"gpt-9-lark","context_window":100,"max_context_window":900000},{"slug":"auto-review","context_window":5}]}` + "\x00",
}

// known is the table before.
const known = `{"models":[
	{"name":"lark-2","provider":"openai","aliases":["lark"],"window":200000,"max_output":64000,"counter":"o200k","images":"tiles-85-170","prices":[{"input":1,"output":4}],"cache":{"match":"prefix","minimum":1024},"date":"2026-01-01","source":"a page"},
	{"name":"heron-1","provider":"anthropic","window":200000,"max_output":8000,"counter":"claude","prices":[{"input":3,"output":15,"cache_write_1h":6}],"cache":{"match":"breakpoint","marks":4},"date":"2026-01-01","source":"a page"}]}`

// folderWith writes the catalogues and the table into a folder, with the text of one file changed: where
// old is empty, that file is not there.
func folderWith(t *testing.T, file, old, new string) (folder, table string) {
	t.Helper()
	folder = t.TempDir()
	table = filepath.Join(folder, "models.json")
	files := maps.Clone(catalogues)
	files["models.json"] = known
	for name, text := range files {
		if path.Base(name) == file {
			if old == "" {
				continue
			}
			text = strings.ReplaceAll(text, old, new)
		}
		at := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder, table
}

// TestRun: the table gets the figures of the catalogues and keeps what they do not have; a new model
// has the rest from the nearest of its family; old models, and those without tools or for pictures,
// get no row.
func TestRun(t *testing.T) {
	folder, table := folderWith(t, "", "", "")
	var told bytes.Buffer
	if err := run(folder, table, "2026-06-01", &told); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	// Of several catalogues the first that has a model counts, and a limit without the input's is none.
	// Names, counter, images and cache stay, as do rows that no catalogue has.
	want := []string{
		`{"name":"lark-2","provider":"openai","aliases":["lark"],"window":200000,"max_output":64000,"counter":"o200k","images":"tiles-85-170","prices":[{"input":2,"output":4}],"cache":{"match":"prefix","minimum":1024},"date":"2026-06-01","source":"models.dev providers/openai, as opencode ships it"}`,
		`{"name":"heron-1","provider":"anthropic","window":200000,"max_output":8000,"counter":"claude","prices":[{"input":3,"output":15,"cache_write_1h":6}],"cache":{"match":"breakpoint","marks":4},"date":"2026-01-01","source":"a page"}`,
		`{"name":"heron-2","provider":"anthropic","window":1000000,"max_output":32000,"counter":"claude","estimated":true,"prices":[{"input":5,"output":25,"cache_read":0.5,"cache_write":6.25,"cache_write_1h":10}],"cache":{"match":"breakpoint","marks":4},"binds_thinking":true,"date":"2026-06-01","source":"models.dev providers/anthropic, as opencode ships it"}`,
		`{"name":"gpt-9-lark","provider":"openai","window":900000,"counter":"o200k","date":"2026-06-01","source":"the list of Codex"}`,
		`{"name":"lark-3","provider":"openai","window":400000,"max_input":272000,"max_output":128000,"counter":"o200k","images":"tiles-85-170","prices":[{"input":2,"output":8,"cache_read":0.5},{"above":200000,"input":4,"output":16,"cache_read":1}],"cache":{"match":"prefix","minimum":1024},"date":"2026-06-01","source":"models.dev providers/openai, as opencode ships it"}`,
		`{"name":"lark-4","provider":"openai","window":200000,"max_output":50000,"counter":"o200k","images":"tiles-85-170","cache":{"match":"prefix","minimum":1024},"date":"2026-06-01","source":"the list of pi, provider openai"}`,
	}
	if _, rows, _ := strings.Cut(string(data), "\"date\": \"2026-06-01\",\n  \"models\": [\n    "); rows != strings.Join(want, ",\n    ")+"\n  ]\n}\n" {
		t.Errorf("the table is\n%s", data)
	}
	if got := told.String(); got != "new: heron-2\nnew: lark-3\nchanged: lark-2\nnew: lark-4\nnew: gpt-9-lark\n" {
		t.Errorf("told: %s", got)
	}
	if _, err := token.ParseModels(data); err != nil {
		t.Error(err)
	}
	if err := run(folder, table, "2026-07-01", &told); err != nil || !strings.HasSuffix(told.String(), "new: gpt-9-lark\n") {
		t.Errorf("a second time it changes figures: %s, %v", told.String(), err)
	}
}

// TestRunFails: what cannot be read is named, and the table stays as it is.
func TestRunFails(t *testing.T) {
	for _, c := range []struct{ name, file, old, new, want string }{
		{"a catalogue is not installed", "codex", "", "", "holds no node_modules/@openai/codex-linux-*/vendor/*/bin/codex"},
		{"opencode has another form", "opencode", "{id:", "{name:", "no snapshot of models.dev in the known form"},
		{"an object has no end", "opencode", "}};", "", "the object has no end"},
		{"an object calls a function", "opencode", "!1", "f()", "is '('"},
		{"Codex has another form", "codex", `"slug"`, `"id"`, "no list in the known form"},
		{"the table is none", "models.json", known, "{", "models.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder, table := folderWith(t, c.file, c.old, c.new)
			before, _ := os.ReadFile(table)
			err := run(folder, table, "2026-06-01", new(bytes.Buffer))
			if after, _ := os.ReadFile(table); err == nil || !strings.Contains(err.Error(), c.want) || !bytes.Equal(before, after) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
