package transcript

import (
	"github.com/tidwall/gjson"
)

// sniff tells the format from one line, or from the document; "" when it does
// not show.
func sniff(v gjson.Result) Format {
	if !v.IsObject() {
		return ""
	}
	kind := v.Get("type").Str
	switch {
	case claude(v, kind):
		return ClaudeCode
	}
	return ""
}

// claude recognises a line of a Claude Code session.
func claude(v gjson.Result, kind string) bool {
	switch kind {
	case "":
		return false
	case "user", "assistant":
		return v.Get("message").IsObject() && (v.Get("uuid").Exists() || v.Get("sessionId").Exists())
	case "summary":
		return v.Get("leafUuid").Exists()
	case "file-history-snapshot":
		return v.Get("snapshot").Exists()
	}
	return v.Get("parentUuid").Exists() && v.Get("uuid").Exists() ||
		claudeSilent[kind] && v.Get("sessionId").Exists()
}
