package proxy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestOneResponse: however many requests an answer took, it is one response: with
// one id in every event, under which the provider is asked for what it holds, and
// with the client's own tools.
func TestOneResponse(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for _, rounds := range []int{0, 2} {
			t.Run(fmt.Sprintf("stream %t, %d rounds", stream, rounds), func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				up.Model = func(q *proxytest.Request) proxytest.Answer {
					if asks(q) < rounds {
						return lookup(q)
					}
					return proxytest.Answer{Text: "ok"}
				}
				url, _ := start(t, up, smallWindow())
				a := newAgent(t, wire.Responses, url, stream)
				a.grow(0, 24)
				s := a.ask()
				if n := len(up.Requests()); n != rounds+1 || !offered(up.Requests()[0]) {
					t.Fatalf("%d requests upstream", n)
				}
				ids := regexp.MustCompile(`"id":"(resp_[^"]*)"`).FindAllStringSubmatch(string(s.raw), -1)
				names := map[string]bool{}
				for _, m := range ids {
					names[m[1]] = true
				}
				if len(names) != 1 || strings.Contains(string(s.raw), recall.ReadArtifactTool) || strings.Contains(string(s.raw), recall.RecallTool) {
					t.Errorf("ids %v: %s", names, s.raw)
				}
				for _, line := range slices.Collect(strings.Lines(string(s.raw))) {
					echo := gjson.Parse(strings.TrimPrefix(line, "data: "))
					if stream {
						echo = echo.Get("response")
					}
					if tools := echo.Get("tools"); tools.Exists() && tools.Get("#.name").Raw != `["read_file","run"]` {
						t.Errorf("the answer shows the tools %s", tools.Raw)
					}
				}
				last := fmt.Sprintf("resp_%d", rounds+1)
				body := fmt.Sprintf(`{"model":"test-model","input":"Go on.","previous_response_id":%q}`, ids[0][1])
				post(t, url+"/v1/responses", []byte(body), nil)
				if got := gjson.GetBytes(up.Requests()[rounds+1].Body, "previous_response_id").Str; got != last {
					t.Errorf("the provider is asked to go on with %s, it holds the answer as %s", got, last)
				}
				res, err := a.client.Get(url + "/v1/responses/" + ids[0][1] + "/input_items?limit=3")
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if got := up.Requests()[rounds+2].Path; got != "/v1/responses/"+last+"/input_items?limit=3" {
					t.Errorf("the provider is asked for %s", got)
				}
			})
		}
	}
}
