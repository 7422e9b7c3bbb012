package carrier

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"example.com/shipq/order"
	"example.com/shipq/retry"
)

var parcel = order.Order{ID: "ORD-10007-A", Customer: "Ada Quist", Country: "SE", WeightGrams: 1200, Service: order.Standard}

// answer is one scripted reply of the fake carrier.
type answer struct {
	code   int
	header map[string]string
	body   string
}

// fake is a carrier that gives scripted answers and remembers the requests.
type fake struct {
	*httptest.Server
	keys []string
	refs []string
}

func newFake(t *testing.T, answers ...answer) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req labelRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Errorf("request body: %v", err)
		}
		f.keys = append(f.keys, r.Header.Get("Idempotency-Key"))
		f.refs = append(f.refs, req.Reference)
		a := answers[min(len(f.keys), len(answers))-1]
		for k, v := range a.header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(a.code)
		fmt.Fprint(w, a.body)
	}))
	t.Cleanup(f.Close)
	return f
}

// client returns a client of the fake that records delays instead of waiting.
func (f *fake) client(delays *[]time.Duration) *Client {
	return &Client{
		BaseURL: f.URL,
		Retry: retry.Runner{
			Policy: retry.Policy{MaxAttempts: 4, Base: time.Second, Cap: time.Minute},
			Sleep: func(ctx context.Context, d time.Duration) error {
				*delays = append(*delays, d)
				return ctx.Err()
			},
		},
	}
}

const label = `{"ref":"LBL-1","tracking_no":"NP000001","cents":495}`

func TestCreateLabel(t *testing.T) {
	var delays []time.Duration
	f := newFake(t, answer{code: 201, body: label})
	got, err := f.client(&delays).CreateLabel(context.Background(), parcel)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Label{Ref: "LBL-1", TrackingNo: "NP000001", Cents: 495}); got != want {
		t.Errorf("label = %+v, want %+v", got, want)
	}
	if f.refs[0] != "ORD-10007-A" {
		t.Errorf("reference = %q", f.refs[0])
	}
}

func TestCreateLabelKeepsItsIdempotencyKey(t *testing.T) {
	var delays []time.Duration
	f := newFake(t, answer{code: 503}, answer{code: 500}, answer{code: 201, body: label})
	if _, err := f.client(&delays).CreateLabel(context.Background(), parcel); err != nil {
		t.Fatal(err)
	}
	if len(f.keys) != 3 {
		t.Fatalf("%d requests, want 3", len(f.keys))
	}
	if f.keys[0] == "" || f.keys[0] != f.keys[1] || f.keys[1] != f.keys[2] {
		t.Error("the idempotency key changed between attempts")
	}
}

func TestCreateLabelGivesUp(t *testing.T) {
	tests := []struct {
		code, calls int
	}{
		{400, 1},
		{404, 1},
		{422, 1},
		{408, 4},
		{429, 4},
		{500, 4},
		{503, 4},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.code), func(t *testing.T) {
			var delays []time.Duration
			f := newFake(t, answer{code: tt.code, body: "no"})
			if _, err := f.client(&delays).CreateLabel(context.Background(), parcel); err == nil {
				t.Error("want an error")
			}
			if len(f.keys) != tt.calls {
				t.Errorf("%d requests, want %d", len(f.keys), tt.calls)
			}
		})
	}
}

func TestRetryAfterSeconds(t *testing.T) {
	var delays []time.Duration
	f := newFake(t,
		answer{code: 429, header: map[string]string{"Retry-After": "17"}},
		answer{code: 201, body: label})
	if _, err := f.client(&delays).CreateLabel(context.Background(), parcel); err != nil {
		t.Fatal(err)
	}
	if len(delays) != 1 || delays[0] != 17*time.Second {
		t.Errorf("delays = %v, want [17s]", delays)
	}
}

func TestTestOrdersNeverReachTheCarrier(t *testing.T) {
	var delays []time.Duration
	f := newFake(t, answer{code: 201, body: label})
	o := parcel
	o.ID = "ORD-10007-Z"
	if _, err := f.client(&delays).CreateLabel(context.Background(), o); err == nil {
		t.Error("want an error")
	}
	if len(f.keys) != 0 {
		t.Errorf("%d requests, want none", len(f.keys))
	}
}
