package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/shipq/store"
)

const goodOrder = `{"id":"ORD-10007-A","customer":"Ada Quist","country":"SE","weight_grams":1200}`

func newAPI() http.Handler {
	a := &API{Store: store.New(nil), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	return a.Handler()
}

func do(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func TestRequests(t *testing.T) {
	tests := []struct {
		name, method, path, body string
		code                     int
		contains                 string
	}{
		{"create", "POST", "/orders", goodOrder, 201, `"ORD-10007-A"`},
		{"create without a body", "POST", "/orders", "", 400, "error"},
		{"create with a bad id", "POST", "/orders", strings.Replace(goodOrder, "10007", "7", 1), 422, "malformed id"},
		{"get an unknown order", "GET", "/orders/ORD-99999-A", "", 404, "no such order"},
		{"get with a bad id", "GET", "/orders/99999", "", 400, "malformed id"},
		{"list", "GET", "/orders?status=queued", "", 200, "[]"},
		{"list with a bad status", "GET", "/orders?status=lost", "", 400, "unknown status"},
		{"quote", "POST", "/quote", `{"country":"SE","weight_grams":1000}`, 200, `"cents":495`},
		{"stats", "GET", "/stats", "", 200, `"queued":0`},
		{"health", "GET", "/healthz", "", 200, "ok"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := do(newAPI(), tt.method, tt.path, tt.body)
			if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.contains) {
				t.Errorf("%s %s = %d %s, want %d with %q", tt.method, tt.path, w.Code, w.Body, tt.code, tt.contains)
			}
		})
	}
}

func TestCreateTwiceIsAConflict(t *testing.T) {
	h := newAPI()
	do(h, "POST", "/orders", goodOrder)
	if w := do(h, "POST", "/orders", goodOrder); w.Code != http.StatusConflict {
		t.Errorf("second POST = %d %s, want 409", w.Code, w.Body)
	}
}
