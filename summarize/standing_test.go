package summarize

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/standing"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestShortenedMessages: what is left of a shortened message does not repeat the sentences that are
// listed.
func TestShortenedMessages(t *testing.T) {
	const a, b, c = "The first of them stands.", "The second of them is only said.", "The third of them stands."
	for _, tt := range []struct {
		listed []string
		limit  int
		want   string
	}{
		{nil, 1000, a + " " + b + "\n\n" + c},
		{[]string{a}, 1000, "[…] " + b + "\n\n" + c},
		{[]string{a, c}, 1000, "[…] " + b + "\n\n[…]"},
		{[]string{a, b}, 1000, "[…]\n" + c},
		{[]string{b}, 1000, a + " […]\n" + c},
		{[]string{a, b, c}, 1000, ""},
		{[]string{b}, 55, "The first [… 69 characters left out …] stands."}, // as many as of the whole
	} {
		l := laidDown{said: map[thread.ID][]summary.Item{"m2": {{Text: b, Score: standing.Rule}}}}
		for _, text := range tt.listed {
			l.said["m1"] = append(l.said["m1"], summary.Item{Text: text, Score: standing.Rule})
		}
		if got := l.shorten(&summary.Item{Text: a + " " + b + "\n\n" + c, Sources: []thread.ID{"m1"}}, tt.limit); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.listed, got, tt.want)
		}
	}
	l := laidDown{said: map[thread.ID][]summary.Item{"m1": {{Text: a, Score: standing.Rule}, {Text: c, Score: standing.Rule}}}}
	if got := l.shorten(&summary.Item{Text: a + "\n" + strings.Repeat("and more of it ", 12) + "\n" + c, Sources: []thread.ID{"m1"}}, 60); got != "" {
		t.Errorf("only a mark is left: %q", got)
	}
}

// TestWholeMessages: where the entries of its sentences take as much as what was cut, a message stays whole; a rule
// has its entry anyway.
func TestWholeMessages(t *testing.T) {
	const a, b = "The first of them is said.", "The second of them is only said, in many more words than the others have."
	for _, tt := range []struct {
		score, limit int
		want         string
	}{
		{standing.Rule - 1, 1000, a + " " + b}, {standing.Rule, 1000, "[…] " + b}, {standing.Rule - 1, 40, "[…] The [… 65 characters left out …] have."},
	} {
		l := laidDown{said: map[thread.ID][]summary.Item{"m": {{Text: a, Score: tt.score}}}}
		if got := l.shorten(&summary.Item{Text: a + " " + b, Sources: []thread.ID{"m"}}, tt.limit); got != tt.want {
			t.Errorf("%d, %d bytes: %q, want %q", tt.score, tt.limit, got, tt.want)
		}
	}
}

// TestSharedRareWords: a sentence that shares two rare words with an earlier one is taken to change it,
// however it is worded; one is not enough.
func TestSharedRareWords(t *testing.T) {
	got := linked(nil, []summary.Item{
		{Text: "Ewa bakes the wedding cake herself.", Turn: 1},
		{Text: "The parcels go to Leeds.", Turn: 2},
		{Text: "The wedding cake comes from Hobbs now.", Turn: 3},
		{Text: "It rained in Leeds.", Turn: 4},
	}, &Input{})
	for i, want := range []int{2, -1, -1, -1} {
		if got.changedBy[i] != want {
			t.Errorf("%q is changed by %d, want %d", got.items[i].Text, got.changedBy[i], want)
		}
	}
}

// TestOffScreen: of a message with words of the user's own, what was copied from a terminal lays nothing down.
func TestOffScreen(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"padded", "Can you explain this?\n\nThe orchard is closed for now.          \nNever open it again.\n\nNever touch the gate.", "Can you explain this?|Never touch the gate."},
		{"indented", "Can you explain this?\n\n  The orchard is closed,\n  never open it.", "Can you explain this?"},
		{"a list", "Two rules for you.\n\n  - Never open the orchard.\n  - Never touch the gate.", "Two rules for you.|Never open the orchard.|Never touch the gate."},
		{"all of it", "  Never open the orchard.\n  Never touch the gate.", "Never open the orchard.|Never touch the gate."},
	} {
		var got []string
		for _, c := range readClauses(nil, tt.text) {
			got = append(got, c.Text)
		}
		if all := strings.Join(got, "|"); all != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, all, tt.want)
		}
	}
}

// TestPasted: what the user copied from a screen is nothing that the user laid down.
func TestPasted(t *testing.T) {
	for text, want := range map[string]bool{
		"> Send it by Friday.":              true,
		"+       // Use the old key first.": true,
		"-       if err != nil {":           true,
		"-   Always write in British.":      false,
		"-\tNever touch the legacy folder.": false,
		"get names(): string[];":            true,
		"├── main.go":                       true,
		"- Use tabs in Go files.":           false,
		"Never call load() twice;":          false,
		"Keep the braces on one line {}.":   false,
		"-1 is the mark of the end.":        false,
	} {
		if pasted(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}

// TestMaterial: of a long message what the user put in and did not write is nothing that the user laid down, and
// what they wrote around it is.
func TestMaterial(t *testing.T) {
	const screen = `$ palisade build --all
== Step 1: check the tree ==
ok  orchard/seeds  0.41s
ok  orchard/beds   1.02s
You have an active session.
{"branch": "main", "files": ["a.go", "b.go"]}
2 files changed, 18 insertions(+)
== Step 2: write the report ==
report: /var/tmp/orchard/report.txt
12:  "always": true,
13:  "never": false,
== Done ==
`
	brief := "Please look at what it printed. From now on always run it with --dry first, and never write to the seeds table.\n\n"
	for name, text := range map[string]string{"before it": brief + screen, "behind it": screen + "\n" + brief} {
		var got []string
		for _, c := range readClauses(nil, text) {
			got = append(got, c.Text)
		}
		if want := []string{"From now on always run it with --dry first, and never write to the seeds table."}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, rule := range []string{
		"不要改表。", "永远不要直接推送到 main 分支。", "mainブランチには絶対に直接プッシュしないでください。", "main 브랜치에 절대 직접 푸시하지 마세요.",
		"ตั้งแต่นี้ไปต้องรันเทสต์ก่อนคอมมิตทุกครั้ง และห้ามแก้ไขตาราง seeds เด็ดขาด", "शाखा मेन पर कभी सीधे पुश मत करो।", // marks upon letters
		"من الآن فصاعدًا شغّل الاختبارات دائمًا قبل كل إيداع، ولا تعدّل جدول البذور أبدًا.", "אף פעם לא לדחוף ישירות ל-main.", // no scores were learned for them
		"Никогда не пушь напрямую в main.", "Niemals direkt auf „main“ pushen.", "Ne pousse jamais directement sur main.",
		"Use `pnpm`, never `npm` or `yarn`.", "Never edit src/gen/api.go, src/gen/db.go or db/schema.sql.", "No emojis.",
	} {
		for name, text := range map[string]string{"above": rule + "\n" + screen, "below": screen + rule, "apart above": rule + "\n\n" + screen, "apart below": screen + "\n" + rule} {
			if got := readClauses(nil, text); len(got) != 1 || got[0].Text != rule {
				t.Errorf("%s %s: %v", rule, name, got)
			}
		}
	}
	run := strings.Repeat("== Step: beds.go ==\nbeds=18 rows=40 ms=12\n+\tbed := beds[0]\nrow{1}\n", 4)
	for _, report := range []string{"The rest of the table remains unchanged.", "You must have an active session for that."} {
		if got := readClauses(nil, "The counts are off here.\n\n"+run+"\n"+report+"\n\n"+run); len(got) != 1 {
			t.Errorf("the report of a run: %v", got)
		}
	}
	const between = "No emojis."
	if got := readClauses(nil, screen+between+"\n"+screen); len(got) != 1 || got[0].Text != between {
		t.Errorf("between screens: %v", got)
	}
	var all strings.Builder // a brief in a list
	for i := range 20 {
		fmt.Fprintf(&all, "- Never change the table of bed %d without asking me first.\n", i)
	}
	if n := len(readClauses(nil, all.String())); n != 20 {
		t.Errorf("%d of 20 rules in a list are read", n)
	}
}

// TestBriefs: rules of a brief are read whatever form they have.
func TestBriefs(t *testing.T) {
	const brief = "# Task\nBuild the importer of the orchard.\n\n## Rules\n1. Use `pnpm`, never `npm`.\n2. Never commit to main.\n3. Always run `make check` before `git commit`.\n4. No emojis.\n" +
		"\n## Style\n- Tabs, not spaces.\n- **Never** use `any`.\n- Must work offline.\n\n| Area | Rule |\n|---|---|\n| db | Never drop a table without asking me first |\n" +
		"\n```sh\nmake check\n```\nNever run that without asking.\n\n## Other\nDon't touch vendor/.\n"
	var got []string
	for _, c := range readClauses(nil, brief) {
		got = append(got, c.Text)
	}
	for _, rule := range []string{
		"1. Use `pnpm`, never `npm`.", "2. Never commit to main.", "3. Always run `make check` before `git commit`.", "4. No emojis.", "Tabs, not spaces.", "**Never** use `any`.",
		"Must work offline.", "| db | Never drop a table without asking me first |", "Never run that without asking.", "Don't touch vendor/.",
	} {
		if !slices.Contains(got, rule) {
			t.Errorf("%q is not in %q", rule, got)
		}
	}
}

// TestPlans: of a plan that the user gave only what is surely a rule is read: its steps are none.
func TestPlans(t *testing.T) {
	const plan = "Carry out this plan:\n\n# Move the importer\n\n## Why\nThe importer reads the file twice.\nIt keeps a copy in the cache.\nThis makes it slow.\n\n## Steps\n" +
		"1. Add a method to the reader.\n2. Update the callers in beds.go.\n3. Remove the old method and its tests.\n4. Run the tests of the package.\n\n- The reader in seeds.go\n- The callers in beds.go\n\n" +
		"## How to check\nStart the importer with a small file.\nCompare the numbers with the old ones.\nNever write to the real table.\nUpdate the notes of the release.\n"
	var got []string
	for _, c := range readClauses(nil, plan) {
		got = append(got, c.Text)
	}
	if want := []string{"Never write to the real table."}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestQuotedBack: the assistant's words that the user shows it again, wrapped and marked otherwise, are not the
// user's; a short answer stands with its question, and a bare "yes" without one says nothing.
func TestQuotedBack(t *testing.T) {
	said := func(role thread.Role, text string) thread.Message {
		return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
	}
	log, err := thread.New("quoted").Append(
		said(thread.User, "Please look at how checkpoints are made."),
		said(thread.Assistant, "**The safety mechanism:** Each checkpoint stores the *whole* transcript of its session, never a part of it.\n\nShall I write that down?"),
		said(thread.User, "Can you clarify this:\n\n  The safety mechanism: Each checkpoint stores the whole transcript\n  of its session, never a part of it.\n\nAlways keep the old files as well."),
		said(thread.Assistant, "It stores all. Which format do you want, JSON or YAML?"),
		said(thread.User, "YAML, always"),
		said(thread.Assistant, "Done."),
		said(thread.User, "yes"),
	)
	if err != nil {
		t.Fatal(err)
	}
	out, err := new(Extractive).Summarize(t.Context(), Input{Messages: log.Messages()})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, it := range out.Standing() {
		listed = append(listed, it.Text+"|"+it.Asked)
	}
	all := strings.Join(listed, "\n")
	for _, want := range []string{"Always keep the old files as well.|", "YAML, always|Which format do you want, JSON or YAML?"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not listed:\n%s", want, all)
		}
	}
	for _, not := range []string{"stores the whole", "yes|"} {
		if strings.Contains(all, not) {
			t.Errorf("%q is listed:\n%s", not, all)
		}
	}
}

// TestPiecesStandNot: a lead-in, a piece of a quotation and a bare assent are nothing that still holds.
func TestPiecesStandNot(t *testing.T) {
	k := new(talk).user("Sort the letters of the harbour. He wrote \"Dear all, we never reply on Sundays. Kind regards, the crew\" to me. We take the following order:\n\nAlways answer on paper.").says("Sorted.").user("yes please").says("Done.")
	s := summarizeNow(t, Input{Messages: k.done(t)})
	for _, it := range s.Standing() {
		if strings.HasSuffix(it.Text, ":") || strings.Count(it.Text, `"`) == 1 || it.Text == "yes please" {
			t.Errorf("%q is listed", it.Text)
		}
	}
	if !strings.Contains(s.Render(), "Always answer on paper.") {
		t.Errorf("the rule is gone:\n%s", s.Render())
	}
}

// TestTwoWords: a rule of two words stands, though it begins like an answer; an assent of two does not.
func TestTwoWords(t *testing.T) {
	for text, stands := range map[string]bool{"No mocks.": true, "No Docker": true, "No YAML": true, "Ok, tabs": true, "No thanks.": false, "ok go": false, "no need": false, "yes please": false} {
		k := new(talk).user("Sort the letters of the harbour.").says("Sorted.").user(text).says("Done.")
		s := summarizeNow(t, Input{Messages: k.done(t)})
		if got := slices.ContainsFunc(s.Standing(), func(it summary.Item) bool { return it.Text == text }); got != stands {
			t.Errorf("%q stands: %t", text, got)
		}
	}
}

// TestIdleMessages: what only greets, thanks or drives on is no line of the story, unless it answers a question; a
// message of numbered answers stands whole.
func TestIdleMessages(t *testing.T) {
	k := new(talk).user("Sort the letters of the harbour by date.").says("Sorted.").user("wow, thanks!").says("Shall I drop the copies?").user("ok please")
	for n := range 12 {
		k.says(strings.Repeat("A letter of the harbour follows here. ", 30)).user(fmt.Sprintf("And what of the letters of year %d, %s?", n, strings.Repeat("which came by boat and by mail, ", 12)))
	}
	answers := "1. yup, that is how the office does it, as long as the clerk is there\n2. " + strings.Repeat("the copies go, the letters stay, ", 12) + "\n3. yes, and yes again to what you said of the mail"
	k.user(answers).says("So be it.").user("That is all for the letters of this harbour.")
	s := summarizeNow(t, Input{Messages: k.done(t), Budget: 1600})
	if all := texts(s.Requests); slices.Contains(all, "wow, thanks!") || !slices.Contains(all, "ok please") || !slices.Contains(all, answers) {
		t.Errorf("%q", all)
	}
	for text, want := range map[string]bool{"this results in": true, `we said "no more`: true, "“no more": true, `Keep the 24" layout`: false, `He wrote "version 2"`: false, "No mocks.": false} {
		if incomplete(text) != want {
			t.Errorf("%q is a piece: %t", text, !want)
		}
	}
}
