package summarize

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestBlocks: each line of a file that was read knows the line that begins its function or type.
func TestBlocks(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"Go", "     1→package x_test\n     2→\n     3→func Load_it(ctx_one int,\n     4→\tname_two string,\n     5→) error {\n     6→\tif err_one := open_it(); err_one != nil {\n     7→\t\treturn fail_it(err_one)\n     8→\t}\n     9→}\n    10→\n    11→var limit_two = 3_000",
			"open_it:func Load_it(ctx_one int, fail_it:func Load_it(ctx_one int, limit_two:-"},
		{"signature of several lines", "func Load_it(\n\tname_two string,\n) error {\n\tread_it(name_two)\n}\nread_all()", "name_two string:func Load_it( read_it:func Load_it( read_all:-"},
		{"Python", "class Order_book:\n    def add_it(self):\n        self.list_of.append(one_of)\n    total_of = 3\nmain_of()", "def add_it:class Order_book: list_of:def add_it(self): total_of:class Order_book: main_of:-"},
		{"TypeScript", "export class Order_book {\n  total_of = read_it();\n}\nit('adds_one', () => {\n  expect_it(total_of);\n});\nrun_it();", "read_it:export class Order_book { expect_it:it('adds_one', () => { run_it:-"},
		{"not from the beginning", "\t\treturn fail_it(err_one)\n\t}\n}\nfunc next_it() {\n\tcall_it()\n}", "fail_it:- call_it:func next_it() {"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := readResult(nil, thread.ToolResult{Tool: "Read", Content: []thread.Part{thread.Text{Text: tt.text}}})
			headOf := func(word string) string {
				for _, p := range r.idLines {
					switch {
					case !strings.Contains(p.text, word):
					case p.head == 0:
						return "-"
					default:
						return r.idLines[p.head-1].text
					}
				}
				t.Fatalf("no line holds %s: %+v", word, r.idLines)
				return ""
			}
			for rest := tt.want; rest != ""; {
				word, after, _ := strings.Cut(rest, ":")
				head := headOf(strings.TrimSpace(word))
				var ok bool
				if rest, ok = strings.CutPrefix(after, head); !ok {
					t.Fatalf("%s stands in %q, want %q", word, head, after)
				}
			}
		})
	}
}

// TestBlocksShown: a line of code is shown below the line that begins its function.
func TestBlocksShown(t *testing.T) {
	var file strings.Builder
	for _, name := range []string{"parse_header", "check_total", "write_report"} {
		file.WriteString("func " + name + "(in *order_line) error {\n")
		for range 30 {
			file.WriteString("\tsomething.Else()\n")
		}
		file.WriteString("\treturn wrap_" + name + "(in, errBroken_" + name + ")\n}\n\n")
	}
	k := (&talk{}).user("Where does check_total wrap errBroken_check_total?")
	k.calls("Read", args{"file_path": "/p/order.go"}, file.String(), thread.Success)
	k.says("In wrap_check_total, at its end.")
	text := summarizeNow(t, Input{Messages: k.done(t), Budget: 400}).Render()
	want := "  … func check_total(in *order_line) error {\n    … return wrap_check_total(in, errBroken_check_total)\n"
	if !strings.Contains(text, want) {
		t.Errorf("want\n%s\nin\n%s", want, text)
	}
}
