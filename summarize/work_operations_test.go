package summarize

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestWorkOperations(t *testing.T) {
	l := (&logOf{}).user("change my flight")
	l.op("get_user_details", map[string]any{"user_id": "u"}, `{"name":"x"}`)
	l.op("calculate", map[string]any{"expression": "1+1"}, "2")
	l.op("book_reservation", map[string]any{"user_id": "u", "cabin": "economy"}, `{"reservation_id": "HATHAT", "flights": [1], "user_id": "u"}`)
	l.op("update_reservation_flights", map[string]any{"reservation_id": "R1"}, "Error: gift card balance is not enough")
	l.op("cancel_order", map[string]any{"id": 1}, `{"error": "not allowed for this order"}`)
	l.op("cancelOrder", map[string]any{"id": 2}, `{"error": "", "id": 2, "response": "ok"}`)
	l.op("send_certificate", map[string]any{"amount": 50}, "Certificate added").op("send_certificate", map[string]any{"amount": 50}, "Certificate added")
	l.call("transfer_to_human_agents", map[string]any{"summary": "x"})
	w := l.fold(t, state.Work{})
	var got []string
	for _, o := range w.Operations {
		got = append(got, fmt.Sprintf("%s %s|%s", o.Tool, o.Outcome, o.Reason))
	}
	want := []string{
		"book_reservation success|reservation_id=HATHAT", "update_reservation_flights failure|Error: gift card balance is not enough",
		"cancel_order failure|not allowed for this order", "cancelOrder success|response=ok", "send_certificate success|Certificate added",
		"send_certificate success|Certificate added", "transfer_to_human_agents |",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("operations\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
	l.result("transfer_to_human_agents", thread.Success, "Transfer successful")
	if w := l.fold(t, state.Work{}); w.Operations[6].Outcome != thread.Success || w.Operations[6].Reason != "Transfer successful" {
		t.Errorf("answered: %+v", w.Operations[6])
	}
}

// TestOperationAnswers: of an answer only what the call itself says, by name and whole value, is left out, a plain text
// never, and what is left out takes no room. Numbers that it adds come before the rest where room is short.
func TestOperationAnswers(t *testing.T) {
	long := strings.Repeat("w", 50)
	for _, c := range []struct {
		tool   string
		args   map[string]any
		answer string
		want   string
	}{
		{"create_payment", map[string]any{"order": 7}, `{"url":"https://pay.example/go?order=7"}`, "url=https://pay.example/go?order=7"},
		{"cancel_items", map[string]any{"items": 3}, `{"remaining":3,"refunded_euros":3}`, "remaining=3 refunded_euros=3"},
		{"send_message", map[string]any{"text": "all done now"}, "done", "done"},
		{"submit_answer", map[string]any{"answer": "x1"}, "x1", "x1"},
		{"book_room", map[string]any{"room": "A1", "nights": 2}, `{"room":"A1","nights":2,"code":"QX7"}`, "code=QX7"},
		{"book_room", map[string]any{"note": long, "room": "A1"}, `{"note":"` + long + `","room":"A1","code":"QX7"}`, "code=QX7"},
		{"cancel_booking", map[string]any{"id": "B1"}, `{"holder":"` + long + `","id":"B1","refund":-6594}`, "refund=-6594"},
		{"cancel_booking", map[string]any{"id": "B1"}, `{"state":"canceled","rooms":[1],"refund":-6594}`, "refund=-6594 state=canceled"},
		{"submit_report", map[string]any{"id": "B1"}, "Not accepted: " + strings.Repeat("no ", 30) + "end", "Not accepted: " + strings.Repeat("no ", 30) + "end"},
	} {
		w := (&logOf{}).user("go on").op(c.tool, c.args, c.answer).fold(t, state.Work{})
		if len(w.Operations) != 1 || w.Operations[0].Reason != c.want {
			t.Errorf("%s %v: %+v, want %q", c.tool, c.args, w.Operations, c.want)
		}
	}
}
