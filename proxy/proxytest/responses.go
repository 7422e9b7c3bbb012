package proxytest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// kept are the answers that an upstream holds, so that later requests can go on
// with them: the whole input and output of each, by its id; of a message of a thread,
// its system and tools before that.
type kept struct {
	mu        sync.Mutex
	items     map[string][]string
	continued map[string]bool // messages of threads
}

// whole is the body with the history that stands behind its previous_response_id.
func (k *kept) whole(body []byte) (full []byte, status int, said string) {
	previous := gjson.GetBytes(body, "previous_response_id").Str
	if previous == "" {
		return body, 0, ""
	}
	k.mu.Lock()
	items, known := k.items[previous]
	k.mu.Unlock()
	if !known {
		return nil, http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":"Previous response with id '%s' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`, previous)
	}
	full, _ = sjson.DeleteBytes(body, "previous_response_id")
	full, _ = sjson.SetRawBytes(full, "input", []byte("["+strings.Join(append(items[:len(items):len(items)], inputItems(body)...), ",")+"]"))
	return full, 0, ""
}

// keep holds a response, unless the client asks not to.
func (k *kept) keep(id string, full []byte, output []string) {
	if v := gjson.GetBytes(full, "store"); v.Exists() && !v.Bool() {
		return
	}
	items := append(inputItems(full), output...)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.items == nil {
		k.items = map[string][]string{}
	}
	k.items[id] = items
}

// ForgetResponses forgets the responses and threads that Chains holds.
func (u *Upstream) ForgetResponses() {
	u.kept.mu.Lock()
	defer u.kept.mu.Unlock()
	u.kept.items, u.kept.continued = nil, nil
}

func inputItems(body []byte) []string {
	input := gjson.GetBytes(body, "input")
	if input.Type == gjson.String {
		return []string{`{"role":"user","content":` + input.Raw + `}`}
	}
	var items []string
	for _, item := range input.Array() {
		items = append(items, item.Raw)
	}
	return items
}
