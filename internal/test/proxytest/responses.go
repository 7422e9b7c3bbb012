package proxytest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// chainStore holds answers for later requests to continue: the whole input and output of each by its id;
// for a message of a thread, its system and tools before that.
type chainStore struct {
	mu        sync.Mutex
	items     map[string][]string
	continued map[string]bool // messages of threads
}

// withHistory is the body with the history that it names.
func (k *chainStore) withHistory(body []byte) (full []byte, status int, said string) {
	previous := gjson.GetBytes(body, "previous_response_id").Str
	conversation := conversationID(body)
	if previous == "" && conversation == "" {
		return body, 0, ""
	}
	k.mu.Lock()
	items, known := k.items[previous+conversation]
	k.mu.Unlock()
	if !known && conversation != "" {
		return nil, http.StatusNotFound, fmt.Sprintf(`{"error":{"message":"Conversation with id '%s' not found.","type":"invalid_request_error","param":null,"code":null}}`, conversation)
	}
	if !known {
		return nil, http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":"Previous response with id '%s' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`, previous)
	}
	full, _ = sjson.DeleteBytes(body, "previous_response_id")
	full, _ = sjson.DeleteBytes(full, "conversation")
	full, _ = sjson.SetRawBytes(full, "input", []byte("["+strings.Join(append(items[:len(items):len(items)], inputItems(body)...), ",")+"]"))
	return full, 0, ""
}

// keepResponse holds a response, unless the client says store: false.
func (k *chainStore) keepResponse(id, conversation string, full []byte, output []string) {
	if conversation != "" {
		k.put(conversation, append(inputItems(full), output...))
	}
	if v := gjson.GetBytes(full, "store"); v.Exists() && !v.Bool() {
		return
	}
	k.put(id, append(inputItems(full), output...))
}

func (k *chainStore) put(id string, items []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.items == nil {
		k.items = map[string][]string{}
	}
	k.items[id] = items
}

func conversationID(body []byte) string {
	v := gjson.GetBytes(body, "conversation")
	return v.Str + v.Get("id").Str
}

// conversations answers a request about conversations; false for others.
func (k *chainStore) conversations(w http.ResponseWriter, q *Request) bool {
	path := strings.Split(strings.TrimPrefix(q.Path, "/v1/"), "/")
	if path[0] != "conversations" {
		return false
	}
	id := ""
	if len(path) > 1 {
		id = path[1]
	}
	k.mu.Lock()
	items, known := k.items[id]
	k.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	added := elements(gjson.GetBytes(q.Body, "items"))
	switch {
	case len(added) > 20:
		w.WriteHeader(http.StatusBadRequest)
		q.Refused = "at most 20 items at a time"
		fmt.Fprint(w, refusal(wire.Responses, q.Refused))
	case id == "":
		id = fmt.Sprintf("conv_%d", q.N)
		k.put(id, added)
		fmt.Fprintf(w, `{"id":%q,"object":"conversation","created_at":1,"metadata":{}}`, id)
	case !known:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, refusal(wire.Responses, "Conversation with id '"+id+"' not found."))
	case q.Method == http.MethodDelete && len(path) == 2:
		k.mu.Lock()
		delete(k.items, id)
		k.mu.Unlock()
		fmt.Fprintf(w, `{"id":%q,"object":"conversation.deleted","deleted":true}`, id)
	case q.Method == http.MethodDelete: // of an item: it deletes the last one
		k.put(id, items[:len(items)-1])
		fmt.Fprintf(w, `{"id":%q,"object":"conversation","created_at":1,"metadata":{}}`, id)
	default:
		if q.Method == http.MethodPost {
			k.put(id, append(items[:len(items):len(items)], added...))
			items = added
		}
		fmt.Fprintf(w, `{"object":"list","data":[%s],"first_id":"","last_id":"","has_more":false}`, strings.Join(items, ","))
	}
	return true
}

// ForgetResponses forgets the responses and threads that Chains holds.
func (u *Upstream) ForgetResponses() {
	u.chains.mu.Lock()
	defer u.chains.mu.Unlock()
	u.chains.items, u.chains.continued = nil, nil
}

func inputItems(body []byte) []string {
	input := gjson.GetBytes(body, "input")
	if input.Type == gjson.String {
		return []string{`{"role":"user","content":` + input.Raw + `}`}
	}
	return elements(input)
}
