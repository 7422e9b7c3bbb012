package proxy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
)

// TestResponsesAreBounded: the oldest responses are forgotten, also those of a process
// before this one.
func TestResponsesAreBounded(t *testing.T) {
	memory := &store.Memory{}
	save := func(l *responseLog, from, to int) {
		for n := from; n < to; n++ {
			if err := l.save(t.Context(), fmt.Sprintf("resp_%d", n), &storedResponse{Made: int64(n + 1)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := &responseLog{records: responsesIn(memory)}
	save(l, 0, maxResponses-10)
	l = &responseLog{records: responsesIn(memory)} // after a restart
	save(l, maxResponses-10, maxResponses+5)
	for n, want := range map[int]bool{0: false, 4: false, 5: true, maxResponses + 4: true} {
		k, err := l.get(t.Context(), fmt.Sprintf("resp_%d", n))
		if err != nil || (k.value != nil) != want {
			t.Errorf("response %d: %v %v, want %v", n, k, err, want)
		}
	}
	if k, err := l.get(t.Context(), "a\x00name"); k.value != nil || err != nil {
		t.Errorf("%v %v", k, err)
	}
}

// TestResponsesInACircle: responses that lead nowhere are as if nobody knew the response.
func TestResponsesInACircle(t *testing.T) {
	l := &responseLog{records: responsesIn(&store.Memory{})}
	l.save(t.Context(), "resp_a", &storedResponse{Previous: "resp_b"})
	l.save(t.Context(), "resp_b", &storedResponse{Previous: "resp_a"})
	l.save(t.Context(), "resp_c", &storedResponse{Previous: "resp_z"})
	for _, id := range []string{"resp_a", "resp_c", "resp_z"} {
		if c, err := l.resolve(t.Context(), id); c != nil || err != nil {
			t.Errorf("%s: %v %v", id, c, err)
		}
	}
}

// TestForget: of a log that is deleted no response is remembered, nor one that
// leads to it by the response before; those of other logs stay, and so does a
// circle, which leads nowhere.
func TestForget(t *testing.T) {
	l := &responseLog{records: responsesIn(&store.Memory{})}
	gone := loggedHistory{Log: "gone", At: 2, Last: "m"}
	saved := map[string]*storedResponse{
		"resp_a": {loggedHistory: gone}, "resp_b": {Previous: "resp_a"}, "resp_c": {Previous: "resp_b"}, "resp_d": {Previous: "resp_c", loggedHistory: loggedHistory{Log: "other", At: 1}},
		"resp_e": {Previous: "resp_d"}, "resp_f": {Previous: "resp_g"}, "resp_g": {Previous: "resp_f"}, "resp_h": {Previous: "resp_z"}, "resp_i": {},
	}
	for n := range 3 * recordsPage { // several pages, and the first and the last hold some
		saved[fmt.Sprintf("resp_%03d", n)] = &storedResponse{loggedHistory: loggedHistory{Log: "other"}}
		saved[fmt.Sprintf("zesp_%03d", n)] = &storedResponse{loggedHistory: gone}
	}
	for id, k := range saved {
		if err := l.save(t.Context(), id, k); err != nil {
			t.Fatal(err)
		}
	}
	tr := conversations{beginnings: beginningsIn(l.documents)}
	for _, base := range []string{"other", "gone"} {
		tr.noteBeginning(t.Context(), "hello", base)
	}
	for range 2 {
		if err := Forget(t.Context(), l.documents, "gone"); err != nil {
			t.Fatal(err)
		}
		if got, err := tr.beginnings.getValue(t.Context(), "hello"); err != nil || !slices.Equal(got, []string{"other"}) {
			t.Errorf("conversations that begin so: %q, %v", got, err)
		}
		for id := range saved {
			want := !slices.Contains([]string{"resp_a", "resp_b", "resp_c"}, id) && id[0] != 'z'
			if k, err := l.get(t.Context(), id); err != nil || (k.value != nil) != want {
				t.Errorf("%s is remembered: %v, want %v: %v", id, k.value != nil, want, err)
			}
		}
	}
}
