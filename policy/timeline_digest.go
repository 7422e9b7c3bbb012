package policy

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// digestLimit is how many entries of each kind a digest holds, the newest.
const digestLimit = 200

// mimes are the types of the files that agents write most. The operating system's table
// would give another digest on each machine.
var mimes = map[string]string{
	".css": "text/css", ".csv": "text/csv", ".gif": "image/gif", ".htm": "text/html", ".html": "text/html", ".jpeg": "image/jpeg", ".jpg": "image/jpeg",
	".cjs": "text/javascript", ".js": "text/javascript", ".json": "application/json", ".jsonl": "application/jsonl", ".jsx": "text/javascript", ".md": "text/markdown", ".mjs": "text/javascript", ".pdf": "application/pdf", ".png": "image/png", ".svg": "image/svg+xml",
	".sql": "application/sql", ".toml": "application/toml", ".txt": "text/plain", ".wasm": "application/wasm", ".webp": "image/webp", ".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml", ".zip": "application/zip",

	// Source has no registered types but for a few; these are those in common use.
	".c": "text/x-c", ".cc": "text/x-c++", ".cpp": "text/x-c++", ".cs": "text/x-csharp", ".go": "text/x-go", ".h": "text/x-c", ".hpp": "text/x-c++", ".java": "text/x-java", ".kt": "text/x-kotlin",
	".lua": "text/x-lua", ".php": "text/x-php", ".proto": "text/x-protobuf", ".py": "text/x-python", ".rb": "text/x-ruby", ".rs": "text/x-rust", ".scala": "text/x-scala", ".sh": "text/x-sh", ".swift": "text/x-swift",
	".ts": "text/x-typescript", ".tsx": "text/x-typescript", ".vue": "text/x-vue", ".zig": "text/x-zig",

	".cfg": "text/plain", ".env": "text/plain", ".gitignore": "text/plain", ".ini": "text/plain", ".lock": "text/plain", ".log": "text/plain", ".mod": "text/plain", ".sum": "text/plain",
	"dockerfile": "text/plain", "makefile": "text/plain", "license": "text/plain",
}

// digest adds what the positions from up to at hold to the last digest.
func (w timelineWriter) digest(prev *plan.Summarization, sum *summary.Summary, from, at int) plan.Digest {
	var d plan.Digest
	if prev != nil {
		d = prev.Range.Digest
	}
	tools := map[string][]plan.DigestOutput{}
	for tool, outputs := range d.Tools {
		tools[tool] = slices.Clone(outputs)
	}
	artifacts, searches, hidden := slices.Clone(d.Artifacts), slices.Clone(d.Searches), slices.Clone(d.Hidden)
	artifact := func(a plan.DigestArtifact) {
		artifacts = append(slices.DeleteFunc(artifacts, func(old plan.DigestArtifact) bool { return old.Path == a.Path }), a)
	}
	for _, f := range sum.Files {
		if slices.ContainsFunc(f.Operations, func(op string) bool { return op != "read" && op != "deleted" }) &&
			!slices.ContainsFunc(artifacts, func(old plan.DigestArtifact) bool { return old.Path == f.Path }) {
			artifact(plan.DigestArtifact{Path: f.Path, MIME: mimeOf(f.Path), Visibility: "internal"})
		}
	}
	actions := w.prunedPlan.Actions()
	for i := from; i < at; i++ {
		m := w.situation.Thread.At(i)
		if ref := actions[m.ID]; ref.Action == plan.Clear {
			shown := w.situation.Profile.Replacement(*m, w.prunedPlan.Record(ref), true)[0]
			text := shown.Text()
			if r, ok := shown.Result(); ok {
				text = r.Text()
			}
			hidden = append(hidden, plan.DigestHidden{Path: blockPath(m), MessageID: m.ID, Replacement: text})
		}
		r, ok := m.Result()
		if !ok {
			continue
		}
		tools[r.Tool] = append(tools[r.Tool], plan.DigestOutput{Path: blockPath(m), MessageID: m.ID, Outcome: r.Outcome, Bytes: len(r.Text())})
		if where, _ := r.KeyFields["path"].(string); where != "" && (r.KeyFields["mime"] != nil || r.KeyFields["visibility"] != nil || r.KeyFields["sources_used"] != nil) {
			mime, _ := r.KeyFields["mime"].(string)
			visibility, _ := r.KeyFields["visibility"].(string)
			artifact(plan.DigestArtifact{
				Path: where, MIME: cmp.Or(mime, mimeOf(where)), Visibility: cmp.Or(visibility, "internal"), Sources: stringList(r.KeyFields["sources_used"]),
			})
		}
		if searchesMemory(r.Tool) {
			searches = append(searches, w.digestSearch(i, &r))
		}
	}
	for tool, outputs := range tools {
		tools[tool] = newestEntries(outputs)
	}
	if len(tools) == 0 {
		tools = nil
	}
	return plan.Digest{Artifacts: newestEntries(artifacts), Tools: tools, Searches: newestEntries(searches), Hidden: newestEntries(hidden)}
}

func newestEntries[T any](list []T) []T { return list[max(0, len(list)-digestLimit):] }

func mimeOf(name string) string {
	name = strings.ToLower(path.Base(name))
	if mime := mimes[cmp.Or(path.Ext(name), name)]; mime != "" {
		return mime
	}
	return "application/octet-stream"
}

// searchesMemory reports whether a tool searches a memory, as memsearch, memory_search,
// search_memory and mcp__memory__search_nodes do.
func searchesMemory(tool string) bool {
	name := strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(tool))
	return slices.ContainsFunc([]string{"memsearch", "memorysearch", "searchmemor"}, func(part string) bool { return strings.Contains(name, part) })
}

// digestSearch reads what a memory search asked and found: every "path" or "file_path" in
// its result is a hit.
func (w timelineWriter) digestSearch(i int, r *thread.ToolResult) plan.DigestSearch {
	var out plan.DigestSearch
	if c, ok := w.situation.Pairs().Answered(i); ok {
		var arguments struct {
			Query string `json:"query"`
		}
		if json.Unmarshal([]byte(c.Arguments), &arguments) == nil {
			out.Query = arguments.Query
		}
	}
	var found any
	if json.Unmarshal([]byte(cmp.Or(r.Structured, r.Text())), &found) != nil {
		return out
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			where, ok := v["path"].(string)
			if !ok {
				where, ok = v["file_path"].(string)
			}
			if ok {
				out.Hits++
				if !slices.Contains(out.Paths, where) {
					out.Paths = append(out.Paths, where)
				}
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(found)
	slices.Sort(out.Paths) // maps have no order
	return out
}

func stringList(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, e := range list {
		if text, ok := e.(string); ok {
			out = append(out, text)
		}
	}
	return out
}
