package identify

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestExtendedMembers: a body that has more members behind its messages than the one before it, the last of them a list,
// is read with them.
func TestExtendedMembers(t *testing.T) {
	user, model := `{"role":"user","content":"go"}`, `{"role":"assistant","content":"ok"}`
	for name, c := range map[string]struct {
		codec        wire.Codec
		before, then string
		tools        int
		member       string
	}{
		"anthropic": {anthropic.Codec{}, `{"model":"m","messages":[` + user + `]}`, `{"model":"m","messages":[` + user + `,` + model + `,` + user + `],"max_tokens":7,"tools":[{"name":"a","input_schema":{}}]}`, 1, "max_tokens"},
		"chat":      {openai.Chat{}, `{"model":"m","messages":[` + user + `],"stream":true}`, `{"model":"m","messages":[` + user + `,` + model + `,` + user + `],"seed":7,"stop":["x"],"stream":true}`, 0, "seed"},
		"responses": {openai.Responses{}, `{"model":"m","input":[` + user + `]}`, `{"model":"m","input":[` + user + `,` + model + `,` + user + `],"previous_response_id":"r","include":["x"]}`, 0, "previous_response_id"},
		"gemini":    {gemini.Codec{}, `{"contents":[{"role":"user","parts":[{"text":"go"}]}]}`, `{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"text":"ok"}]}],"cachedContent":"x","tools":[{"functionDeclarations":[{"name":"a"}]}]}`, 1, "cachedContent"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := NewIndex(1<<30, 1<<30).Tenant(nil)
			for _, text := range []string{c.before, c.then} {
				r, err := tenant.Read(c.codec, tenant.Similar(c.codec.API(), text), waiting)
				if err != nil {
					t.Fatal(err)
				}
				if text == c.then && (len(r.Prompt.Tools) != c.tools || !r.Has(c.member)) {
					t.Errorf("%d tools, members %v", len(r.Prompt.Tools), r.Members)
				}
			}
		})
	}
}
