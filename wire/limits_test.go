package wire_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestLimits: check finds what is too much in a request of each API, and nothing one below it. G5
func TestLimits(t *testing.T) {
	picture := func(side int) string {
		head := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), 0, 0, byte(side>>8), byte(side), 0, 0, byte(side>>8), byte(side))
		return base64.StdEncoding.EncodeToString(head)
	}
	forms := map[string][2]string{ // a body around items, and one of them
		wire.Anthropic: {`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[%s]}]}`, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}`},
		wire.Chat:      {`{"model":"m","messages":[{"role":"user","content":[%s]}]}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}`},
		wire.Responses: {`{"model":"m","input":[{"role":"user","content":[%s]}]}`, `{"type":"input_image","image_url":"data:image/png;base64,%s"}`},
		wire.Gemini:    {`{"contents":[{"role":"user","parts":[%s]}]}`, `{"inlineData":{"mimeType":"image/png","data":"%s"}}`},
	}
	for _, row := range []struct {
		api     string
		n, side int
		rule    string
		model   string
	}{
		{wire.Anthropic, 100, 60, "", "m"}, {wire.Anthropic, 101, 60, "pictures", "m"},
		{wire.Anthropic, 1, 8000, "", "m"}, {wire.Anthropic, 1, 8001, "pixels", "m"},
		{wire.Anthropic, 20, 2001, "", "m"}, {wire.Anthropic, 21, 2001, "pixels", "m"},
		{wire.Chat, 1500, 9000, "", "m"}, {wire.Chat, 1501, 60, "pictures", "m"},
		{wire.Responses, 1500, 9000, "", "m"}, {wire.Responses, 1501, 60, "pictures", "m"},
		{wire.Gemini, 3600, 9000, "", "m"}, {wire.Gemini, 3601, 60, "pictures", "m"},
		{wire.Anthropic, 600, 60, "", "claude-opus-5"}, {wire.Anthropic, 601, 60, "pictures", "us.anthropic.claude-sonnet-4-6-v1:0"},
		{wire.Anthropic, 101, 60, "pictures", "claude-haiku-4-5"}, {wire.Anthropic, 21, 2001, "pixels", "claude-opus-5"},
	} {
		form := forms[row.api]
		list := strings.Repeat(","+fmt.Sprintf(form[1], picture(row.side)), row.n)[1:]
		var rules []string
		for _, p := range apicodec.For(row.api).Validate([]byte(strings.Replace(fmt.Sprintf(form[0], list), `"model":"m"`, `"model":"`+row.model+`"`, 1))) {
			rules = append(rules, p.Rule)
		}
		if strings.Join(rules, " ") != row.rule {
			t.Errorf("%s, %d of %d pixels: %q, want %q", row.api, row.n, row.side, rules, row.rule)
		}
	}
	if p := wire.LimitsOf(wire.Gemini, "").Broken(wire.Size{Bytes: 101 << 20}); len(p) != 1 || p[0].Rule != "size" {
		t.Errorf("%v", p)
	}
}
