package lost_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/lost"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// conversation makes a thread of lines: "you: …", "model: …", "edit PATH", "read PATH", "run COMMAND => OUTPUT",
// "ask QUESTION => ANSWER", "summary: …", "clear", and "kept: …", which the person had said before the summary.
func conversation(t *testing.T, lines ...string) transcript.Transcript {
	t.Helper()
	var tr transcript.Transcript
	var all []thread.Message
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	text := func(role thread.Role, kind thread.Kind, s string) thread.Message {
		return thread.Message{Role: role, Kind: kind, Time: now, Parts: []thread.Part{thread.Text{Text: s}}}
	}
	call := func(name, arguments, output string, said ...thread.Said) {
		id := fmt.Sprintf("c%d", len(all))
		all = append(all,
			thread.Message{Role: thread.Assistant, Time: now, Parts: []thread.Part{thread.ToolCall{ID: id, Name: name, Arguments: arguments}}},
			thread.Message{Role: thread.Tool, Time: now, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: name, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: output}}, Said: said}}})
	}
	for _, line := range lines {
		now = now.Add(time.Second)
		kind, rest, _ := strings.Cut(line, " ")
		what, output, _ := strings.Cut(rest, " => ")
		switch kind {
		case "you:":
			all = append(all, text(thread.User, thread.Plain, rest))
		case "model:":
			all = append(all, text(thread.Assistant, thread.Plain, rest))
		case "edit":
			call("Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"a","new_string":%q}`, what, output), "The file "+what+" has been updated successfully.")
		case "read":
			call("Read", fmt.Sprintf(`{"file_path":%q}`, what), "package shop")
		case "run":
			call("Bash", fmt.Sprintf(`{"command":%q}`, what), output)
		case "ask":
			call("AskUserQuestion", fmt.Sprintf(`{"questions":[{"question":%q}]}`, what), output, thread.Said{Asked: what, Text: output})
		case "summary:":
			tr.Compactions = append(tr.Compactions, transcript.Compaction{At: len(all), Trigger: "auto"})
			all = append(all, text(thread.User, thread.Recap, rest))
		case "clear":
			tr.Compactions = append(tr.Compactions, transcript.Compaction{At: len(all), Trigger: "clear"})
		case "kept:":
			m := text(thread.User, thread.Plain, rest)
			m.Time = now.Add(-time.Hour)
			all = append(all, m)
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	var err error
	if tr.Thread, err = thread.New("shop").Append(all...); err != nil {
		t.Fatal(err)
	}
	for i := range tr.Compactions {
		if c := &tr.Compactions[i]; c.Trigger != "clear" {
			c.Summary = tr.Thread.At(c.At).ID
		}
	}
	return tr
}

// plain is a summary that tells of the work and of nothing that the person laid down.
const plain = "summary: The user asked for a discount code in the cart of the web shop. The model read the cart, wrote a function for the discount and its tests, and they pass. The user has seen it and was content with it. Next, the model is to show the discount on the page of the order, so that one can see what is saved. It has to look at how the page is made, and then run all of the tests."

// plan is a long text that was put in, with a rule.
const plan = "you: Never commit generated protobuf stubs. Read the cart of the web shop. Read the page of the order. Look at how the page is made. Write a function for the discount. Write the tests of it. Run them all. Show what is saved on the page. Show the discount in the cart. Look at the order with it. Run all of the tests. See that they pass. Ask the user if one is content. Write it down. Tell the user of it. Look at the code again. Read the tests of it again."

// task begins a conversation.
const task = "you: Add a discount code to the cart, please."

// TestFind: what is lost is listed, and what is told in other words, taken back, changed or used up is not.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  string // kind and text of each, parted by semicolons
	}{
		{"a rule", []string{task, "you: Never commit generated protobuf stubs.", plain}, "rule Never commit generated protobuf stubs."},
		{"told in the same words", []string{task, "you: Never commit generated protobuf stubs.", plain + " Rule of the user: never commit generated protobuf stubs."}, ""},
		{"told in other words", []string{task, "you: Never commit generated protobuf stubs.", plain + " Protobuf stubs that are generated stay out of commits."}, ""},
		{"told in another case and spacing", []string{task, "you: Always write totalPrice in the_order_page.", plain + " The name is total price, always, in The Order Page."}, ""},
		{"kept behind the summary", []string{task, "you: Never commit generated protobuf stubs.", plain, "kept: Never commit generated protobuf stubs."}, ""},
		{"taken back before", []string{task, "you: Never commit generated protobuf stubs.", "model: Fine.", "you: Forget the rule about protobuf stubs, do commit the generated protobuf stubs from now on.", plain + " Generated protobuf stubs are committed."}, ""},
		{"taken back after", []string{task, "you: Never commit generated protobuf stubs.", plain, "you: You may commit generated protobuf stubs now, forget that rule about protobuf stubs."}, ""},
		{"a request", []string{task, "you: Fix the typo in the footer of the imprint.", plain}, ""},
		{"a question", []string{task, "you: I prefer terraform over scripts, any objections?", plain}, ""},
		{"a plan that was put in", []string{task, plan, plain}, ""},
		{"one rare word says too little", []string{task, "you: Never use terraform, please.", plain}, ""},
		{"a small number is no name", []string{task, "you: Never commit 40 generated protobuf stubs.", plain + " 40 files."}, "rule Never commit 40 generated protobuf stubs."},
		{"an answer", []string{task, "ask Which currency shall the vouchers have? => Swiss francs, rounded to five centimes", plain}, "decision Swiss francs, rounded to five centimes"},
		{"an answer that is told", []string{task, "ask Which currency shall the vouchers have? => Swiss francs, rounded to five centimes", plain + " Vouchers are in Swiss francs and are rounded to 5 centimes."}, ""},

		{"a file in work", []string{task, "edit /src/shop/internal/voucher/ledger.go", plain}, "file /src/shop/internal/voucher/ledger.go"},
		{"a path by its end", []string{task, "edit /src/shop/internal/voucher/ledger.go", plain + " Changed: voucher/ledger.go."}, ""},
		{"a file by its name without the ending", []string{task, "edit /src/shop/voucherLedger.ts", plain + " Work on the voucher ledger goes on."}, ""},
		{"the test of a file that is told", []string{task, "edit /src/shop/ledger_test.go", plain + " Changed: ledger.go and its tests."}, ""},
		{"a file whose function is told", []string{task, "edit /src/shop/ledger.go => func listVoucherStates() {}", plain + " listVoucherStates no longer forgets old vouchers."}, ""},
		{"a file whose function was told before an earlier compaction", []string{task, "edit /src/shop/ledger.go => func listVoucherStates() {}", plain + " Changed: ledger.go.", "you: And now the page.", plain + " listVoucherStates is there."}, ""},
		{"a file that was committed", []string{task, "edit /src/shop/ledger.go", "run git commit -qam 'Keep a ledger of vouchers' && git log -1 --format='[main %h] %s' => [main 1f2e3d4] Keep a ledger of vouchers\n 1 file changed, 2 insertions(+)", plain + " Committed as 1f2e3d4."}, ""},
		{"a file that was perhaps committed", []string{task, "edit /src/shop/ledger.go", "run git commit -qam 'Keep a ledger' => ", plain}, ""},
		{"a file that was only read", []string{task, "read /src/shop/ledger.go", plain}, ""},
		{"a file of long ago", []string{task, "edit /src/shop/ledger.go", "you: On.", "you: On.", "you: On.", "you: On.", "you: On.", "you: On.", "you: On.", plain}, ""},
		{"a temporary file", []string{task, "edit /src/tmp/ledger.go", plain}, ""},

		{"a rule by its number, with other separators", []string{task, "you: The port stays 18443.", plain + " The port stays 18,443."}, ""},
		{"a value that was changed", []string{task, "you: The port stays 18443.", "model: Fine.", "you: No, the port is 19443 now.", plain + " The port is 19443."}, ""},
		{"the branch that was made", []string{task, "run git checkout -b ann/voucher-ledger => Switched to a new branch 'ann/voucher-ledger'", plain}, "value ann/voucher-ledger"},
		{"a branch of long ago that no call named", []string{task, "run git status => On branch ann/voucher-ledger\nnothing to commit, working tree clean", "you: On.", "you: On.", "you: On.", "you: On.", "you: On.", "you: On.", "you: On.", plain}, "value ann/voucher-ledger"},
		{"main", []string{task, "run git status => On branch development\nnothing to commit, working tree clean", plain}, ""},
		{"a branch that an earlier compaction lost", []string{task, "run git status => On branch ann/voucher-ledger\nnothing to commit, working tree clean", plain, "you: And now the page.", plain}, ""},
		{"a branch that was named again since", []string{task, "run git status => On branch ann/voucher-ledger\nnothing to commit, working tree clean", plain, "run git push origin ann/voucher-ledger => Everything up-to-date", plain}, "value ann/voucher-ledger"},
		{"the branch is told", []string{task, "run git checkout -b ann/voucher-ledger => Switched to a new branch 'ann/voucher-ledger'", plain + " Branch: ann/voucher-ledger"}, ""},

		{"German", []string{"you: Bitte bau einen Rabatt in den Warenkorb ein, mit Tests, und zeig ihn auf der Seite.", "you: Nie direkt auf production deployen.", "summary: Der Benutzer hat um einen Rabatt im Warenkorb gebeten. Das Modell hat ihn eingebaut und die Tests laufen. Als Nächstes soll es den Rabatt auf der Seite mit der Bestellung zeigen, damit man sieht, was man spart, und dann alle Tests noch einmal laufen lassen, ohne etwas zu ändern. Ich bin damit zufrieden."}, "rule Nie direkt auf production deployen."},
		{"German, told in English", []string{"you: Bitte bau einen Rabatt in den Warenkorb ein, mit Tests, und zeig ihn auf der Seite.", "you: Nie direkt auf production deployen.", plain}, ""},
		{"German, with a name that is not told in English", []string{"you: Bitte bau einen Rabatt in den Warenkorb ein, mit Tests, und zeig ihn auf der Seite.", "you: Nie direkt auf shop-prod-07 deployen.", plain}, "rule Nie direkt auf shop-prod-07 deployen."},
		{"Chinese", []string{"you: 请在购物车里增加折扣码，写好函数和测试。", "you: 所有提交信息都用英文写。", "summary: 用户要求在购物车里增加折扣码。模型已经写好了函数和测试，所有测试都通过了。用户看过以后很满意。下一步是在订单页面上显示折扣，要用现有的页面。"}, "rule 所有提交信息都用英文写。"},
		{"Chinese, told", []string{"you: 请在购物车里增加折扣码，写好函数和测试。", "you: 所有提交信息都用英文写。", "summary: 用户要求在购物车里增加折扣码，提交信息都要用英文写。"}, ""},
		{"Chinese, told in English", []string{"you: 请在购物车里增加折扣码，写好函数和测试。", "you: 所有提交信息都用英文写。", plain + " Commit messages are in English."}, ""},
		{"Swedish, told in English", []string{"you: Lägg till en rabattkod i kundvagnen, är du snäll, och skriv tester till den.", "you: Pusha aldrig direkt till huvudgrenen.", plain + " The main branch is never pushed to."}, ""},
		{"lost by an earlier compaction", []string{task, "you: Never commit generated protobuf stubs.", plain, "you: And now the page.", plain}, ""},
		{"said before the user started afresh", []string{task, "you: Never commit generated protobuf stubs.", "clear", "you: Where do we commit the generated protobuf stubs?", plain}, ""},
		{"lost by the second compaction", []string{task, "you: Never commit generated protobuf stubs.", plain + " The user said: never commit generated protobuf stubs.", "you: And now the page.", plain}, "rule Never commit generated protobuf stubs."},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := conversation(t, c.lines...)
			b, ok := lost.Last(&tr, "claude-code")
			if !ok {
				t.Fatal("there is no compaction")
			}
			found, err := lost.Find(t.Context(), tr.Thread, b)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range found {
				if l.Turn == 0 || l.Message == "" {
					t.Errorf("no origin: %+v", l)
				}
				got = append(got, string(l.Kind)+" "+l.Text)
			}
			if got := strings.Join(got, "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestMost: no more than seven are listed, files are a part of them, and what matters most comes first.
func TestMost(t *testing.T) {
	lines := []string{task}
	for _, rule := range []string{"Never commit generated protobuf stubs.", "I prefer terraform over scripts.", "Use tabs, not spaces, in makefiles.", "Keep kerberos tickets out of the logs.", "Ask me before deleting fixtures."} {
		lines = append(lines, "you: "+rule)
	}
	for i := range 9 {
		lines = append(lines, fmt.Sprintf("edit /src/shop/ledger%dbook.go", i))
	}
	tr := conversation(t, append(lines, plain)...)
	b, _ := lost.Last(&tr, "claude-code")
	found, err := lost.Find(t.Context(), tr.Thread, b)
	if err != nil || len(found) != lost.Most {
		t.Fatalf("%d, %v: %v", len(found), err, found)
	}
	if found[0].Kind != lost.Rule || found[len(found)-1].Kind != lost.File || found[2].Kind != lost.Rule {
		t.Errorf("the order is %v", found)
	}
	tr = conversation(t, append(slices.Delete(lines, 1, 6), plain)...)
	b, _ = lost.Last(&tr, "claude-code")
	if found, err := lost.Find(t.Context(), tr.Thread, b); err != nil || len(found) != 4 || found[0].Text != "/src/shop/ledger8book.go" {
		t.Errorf("%d files of 9, %v: %v", len(found), err, found)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lost.Find(ctx, tr.Thread, b); err == nil {
		t.Error("it does not end with its context")
	}
}

// TestLast: the boundary knows what its agent kept.
func TestLast(t *testing.T) {
	tr := conversation(t, task, "model: Done.", plain, "kept: Never push.", "you: On.")
	for _, c := range []struct {
		format   transcript.Format
		from, to int
		onlyUser bool
	}{{"claude-code", 2, 4, false}, {"codex", 0, 4, true}, {"pi", 0, 4, false}, {"goose", 0, 4, false}} {
		b, ok := lost.Last(&tr, c.format)
		if !ok || b.At != 2 || b.From != c.from || b.End != c.to || b.OnlyUser != c.onlyUser {
			t.Errorf("%s: %+v", c.format, b)
		}
	}
	begun := conversation(t, plain, "you: On.")
	if _, ok := lost.Last(&begun, "codex"); ok {
		t.Error("a session that begins with a summary was not compacted")
	}
	tr.Compactions = append(tr.Compactions, transcript.Compaction{At: 4, Trigger: "clear"})
	if _, ok := lost.Last(&tr, "claude-code"); ok {
		t.Error("the user started afresh")
	}
	none := transcript.Transcript{Thread: tr.Thread, Compactions: []transcript.Compaction{{At: 2}}}
	if _, ok := lost.Last(&none, "codex"); ok {
		t.Error("a summary that cannot be read is compared")
	}
}

// TestJudge: what was freed, read again, and said again.
func TestJudge(t *testing.T) {
	tr := conversation(t, task, "read /src/shop/cart.go", "read /src/shop/page.go", "you: Round the totals to full francs.", plain, "read /src/shop/cart.go", "edit /src/shop/page.go", "read /src/shop/page.go", "you: Round the totals to full francs.", "you: On.")
	b, _ := lost.Last(&tr, "claude-code")
	q := lost.Judge(t.Context(), tr.Thread, b, func(*thread.Message) int { return 10 })
	if q.Before != 60 || q.After != 10 || !slices.Equal(q.Reread, []string{"/src/shop/cart.go"}) || !slices.Equal(q.Repeated, []string{"Round the totals to full francs."}) || q.Asked || q.Ended {
		t.Errorf("%+v", q)
	}
	if !q.Messages {
		t.Error("the messages were measured")
	}
	tr.Compactions[0].TokensBefore, tr.Compactions[0].TokensAfter = 700, 300
	b, _ = lost.Last(&tr, "claude-code")
	if q := lost.Judge(t.Context(), tr.Thread, b, func(*thread.Message) int { return 10 }); q.Before != 700 || q.After != 300 || q.Messages {
		t.Errorf("as the agent counted: %+v", q)
	}
	ended := conversation(t, task, "model: Done.", plain)
	b, _ = lost.Last(&ended, "claude-code")
	if q := lost.Judge(t.Context(), ended.Thread, b, func(*thread.Message) int { return 10 }); !q.Ended || q.Before != 20 {
		t.Errorf("the end: %+v", q)
	}
}
