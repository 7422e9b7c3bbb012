//go:build unix

package hostile_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// chat is a request of the Chat API in the making.
type chat struct {
	strings.Builder
	calls int
}

// newChat is one with the first message of the user.
func newChat() *chat {
	c := &chat{}
	c.WriteString(`{"model":"m","tools":[{"type":"function","function":{"name":"Read","parameters":{"type":"object"}}}],"messages":[{"role":"user","content":"Do all of it."}`)
	return c
}

// say adds a message of the user or the assistant.
func (c *chat) say(role, text string) {
	fmt.Fprintf(c, `,{"role":%q,"content":%s}`, role, rawjson.Quote(text))
}

// call adds the beginning of a message with calls; made are the tool and the arguments of each.
func (c *chat) call(words string, made ...string) {
	fmt.Fprintf(c, `,{"role":"assistant","content":%s,"tool_calls":[`, rawjson.Quote(words))
	for i := 0; i < len(made); i += 2 {
		if i > 0 {
			c.WriteByte(',')
		}
		fmt.Fprintf(c, `{"id":"c%d","type":"function","function":{"name":%q,"arguments":%s}}`, c.calls+i/2, made[i], rawjson.Quote(made[i+1]))
	}
	c.WriteString("]}")
}

// answer adds the result of the next call.
func (c *chat) answer(text string) {
	fmt.Fprintf(c, `,{"role":"tool","tool_call_id":"c%d","content":%s}`, c.calls, rawjson.Quote(text))
	c.calls++
}

// does adds a call and its result.
func (c *chat) does(tool, arguments, result string) {
	c.call("", tool, arguments)
	c.answer(result)
}

// end is the request.
func (c *chat) end() []byte {
	c.WriteString("]}")
	return []byte(c.String())
}

// edit are the arguments of an edit.
func edit(file, before, after string) string {
	return fmt.Sprintf(`{"file_path":%q,"old_string":%s,"new_string":%s}`, file, rawjson.Quote(before), rawjson.Quote(after))
}

// write are the arguments of a call that writes a file.
func write(file, text string) string {
	return fmt.Sprintf(`{"file_path":%q,"content":%s}`, file, rawjson.Quote(text))
}

// command are the arguments of a call of a shell.
func command(line string) string { return `{"command":` + rawjson.Quote(line) + `}` }

const updated = "The file has been updated."

// large is a log of about n bytes, and the policy that it is compacted under; empty is auto.
type large struct {
	policy string
	log    func(n int) []byte
}

// steep are logs for which some analysis once took the square of their bytes, or more.
var steep = map[string]large{
	"deep indentation": {"", func(n int) []byte {
		c := newChat()
		deep := strings.Repeat(" ", n/4)
		c.does("Edit", edit("a.go", "x", deep+deep+"deep indentation\n"+deep+strings.Repeat("\t", n/4)+"another one"), updated)
		return c.end()
	}},
	"calls in one message": {"", func(n int) []byte {
		c := newChat()
		var made []string
		for range n / 150 {
			made = append(made, "Read", fmt.Sprintf(`{"file_path":"f%d.go"}`, len(made)))
		}
		c.call("", made...)
		for i := range len(made) / 2 {
			c.answer(fmt.Sprintf("1\tvalue%d", i))
		}
		c.say("user", "Go on.")
		c.say("assistant", "I will.")
		return c.end()
	}},
	"no answer": {"", func(n int) []byte {
		c := newChat()
		for i := range n / 50 {
			c.say("user", fmt.Sprintf("t%d", i))
		}
		return c.end()
	}},
	"answers of an agent in one message": {"", func(n int) []byte {
		c := newChat()
		var made []string
		for range n / 200 {
			made = append(made, "WebFetch", fmt.Sprintf(`{"url":"https://example.com/%d"}`, len(made)))
		}
		c.call("", made...)
		for i := range len(made) / 2 {
			c.answer(fmt.Sprintf("The page %d says that it is so.", i))
		}
		c.say("user", "Go on.")
		c.say("assistant", "I will.")
		return c.end()
	}},
	"definitions of one file": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.does("Edit", edit("a.go", fmt.Sprintf("// %d", i), fmt.Sprintf("func handler%d() {", i)), updated)
		}
		return c.end()
	}},
	"definitions that go": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.does("Edit", edit("a.go", fmt.Sprintf("func handler%d() {", i), fmt.Sprintf("// %d", i)), updated)
		}
		return c.end()
	}},
	"ticks of a plan file": {"", func(n int) []byte {
		c := newChat()
		var plan strings.Builder
		for i := 0; plan.Len() < n/4; i++ {
			fmt.Fprintf(&plan, "- [ ] step %d\n", i)
		}
		c.does("Write", write("plan.md", plan.String()), "File created successfully at: plan.md")
		for i := 0; c.Len() < n; i++ {
			c.does("Edit", edit("plan.md", fmt.Sprintf("- [ ] step %d\n", i), fmt.Sprintf("- [x] step %d\n", i)), updated)
		}
		return c.end()
	}},
	"edits of a plan file": {"", func(n int) []byte {
		c := newChat()
		c.does("Write", write("plan.md", "- [ ] a\n- [ ] b\n- [ ] c\n"+strings.Repeat("words of the plan\n", n/40)), "File created successfully at: plan.md")
		for i := 0; c.Len() < n; i++ {
			c.does("Edit", edit("plan.md", "- [ ] a\n", fmt.Sprintf("- [ ] %d\n- [ ] a\n", i)), updated)
		}
		return c.end()
	}},
	"an edit of a plan file that grows": {"", func(n int) []byte {
		c := newChat()
		c.does("Write", write("plan.md", "- [ ] a\n- [ ] b\n- [ ] c\n"), "File created successfully at: plan.md")
		for range 8 {
			c.does("Edit", strings.TrimSuffix(edit("plan.md", "a", strings.Repeat("a", n/16)), "}")+`,"replace_all":true}`, updated)
		}
		return c.end()
	}},
	"one edit of many of a plan file": {"", func(n int) []byte {
		c := newChat()
		c.does("Write", write("plan.md", "- [ ] a\n- [ ] b\n- [ ] c\n"+strings.Repeat("words of the plan\n", n/60)), "File created successfully at: plan.md")
		var edits []string
		for i := range n / 120 {
			edits = append(edits, fmt.Sprintf(`{"old_string":"- [ ] a\n","new_string":"- [ ] %d\n- [ ] a\n"}`, i))
		}
		c.does("MultiEdit", `{"file_path":"plan.md","edits":[`+strings.Join(edits, ",")+`]}`, updated)
		return c.end()
	}},
	"background processes": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.does("Bash", fmt.Sprintf(`{"command":"serve %d","run_in_background":true}`, i), fmt.Sprintf("Command running in background with ID: b%d", i))
		}
		return c.end()
	}},
	"background processes that end": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n/2; i++ {
			c.does("Bash", fmt.Sprintf(`{"command":"serve %d","run_in_background":true}`, i), fmt.Sprintf("Command running in background with ID: b%d", i))
		}
		for i := 0; c.Len() < n; i++ {
			c.does("KillShell", fmt.Sprintf(`{"shell_id":"x%d"}`, i), "Successfully killed shell")
		}
		return c.end()
	}},
	"branch switches": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.does("Bash", command(fmt.Sprintf("git commit -m 'step %d'", i)), fmt.Sprintf("[b%d %07x] step %[1]d\n 1 file changed, 1 insertion(+)", i, i))
			c.does("Bash", command(fmt.Sprintf("git switch b%d", i+1)), fmt.Sprintf("Switched to branch 'b%d'", i+1))
		}
		return c.end()
	}},
	"pushes": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.does("Bash", command(fmt.Sprintf("git commit -m 'step %d' && git push", i)), fmt.Sprintf("[main %07x] step %d\n 1 file changed, 1 insertion(+)\n   %07x..%07[1]x  main -> main", i+1, i, i))
		}
		return c.end()
	}},
	"stashes": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.does("Bash", command("git stash"), "Saved working directory and index state WIP on main: 1234567 x")
			c.does("create_issue", fmt.Sprintf(`{"title":"issue %d"}`, i), "created")
		}
		return c.end()
	}},
	"files that are added": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.does("Edit", edit(fmt.Sprintf("/w/f%d.go", i%200), "a", "b"), updated)
			c.does("Bash", command(fmt.Sprintf("git add g%d.go", i)), "")
			c.does("Bash", command("git commit -m x -- none.go"), "[main 1234567] x")
		}
		return c.end()
	}},
	"a commit of many files": {"", func(n int) []byte {
		c := newChat()
		for i := range 200 {
			c.does("Edit", edit(fmt.Sprintf("/w/f%d.go", i), "a", "b"), updated)
		}
		for i := 0; c.Len() < n; i++ {
			c.does("Bash", command("git commit -m x "+strings.Repeat("a.go ", 2000)), "[main 1234567] x")
		}
		return c.end()
	}},
	"refusals": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.does("Bash", command(fmt.Sprintf("rm %d", i)), "The user rejected permission to use this specific tool call")
			c.does("Bash", command(fmt.Sprintf("ls %d", i)), "")
		}
		return c.end()
	}},
	"interruptions": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.call("", "create_issue", fmt.Sprintf(`{"title":"issue %d"}`, i))
			c.calls++
			c.say("user", "[Request interrupted by user for tool use]")
		}
		return c.end()
	}},
	"updates of one task": {"", func(n int) []byte {
		c := newChat()
		c.does("TaskCreate", `{"subject":"Do it"}`, "Task #1 created successfully: Do it")
		for i := 0; c.Len() < n; i++ {
			c.does("TaskUpdate", fmt.Sprintf(`{"taskId":"1","subject":"Do it %d","status":"in_progress"}`, i), "Updated task #1 status")
		}
		return c.end()
	}},
	"updates of many tasks": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n/2; i++ {
			c.does("TaskCreate", fmt.Sprintf(`{"subject":"Do %d"}`, i), fmt.Sprintf("Task #%d created successfully: Do", i))
		}
		for i := 0; c.Len() < n; i++ {
			c.does("TaskUpdate", fmt.Sprintf(`{"taskId":"%d","status":"in_progress"}`, i%7), "Updated task status")
		}
		return c.end()
	}},
	"lists of tasks": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n/2; i++ {
			c.does("TaskCreate", fmt.Sprintf(`{"subject":"Do %d"}`, i), "It is done.")
		}
		for c.Len() < n {
			c.does("TaskList", `{}`, "#1 [pending] Do it")
		}
		return c.end()
	}},
	"commands of one line": {"", func(n int) []byte {
		c := newChat()
		for c.Len() < n {
			c.does("Bash", command(strings.Repeat("go test|", 2400)+"cat"), "FAIL\nFAIL\tx\t0.1s")
		}
		return c.end()
	}},
	"writes of one line": {"", func(n int) []byte {
		c := newChat()
		for c.Len() < n {
			c.does("Bash", command(strings.Repeat("x>a;", 4800)), "")
		}
		return c.end()
	}},
	"summaries alone": {"session", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.say("user", fmt.Sprintf("This session is being continued from a previous conversation that ran out of context. The conversation is summarized below: step %d was done.", i))
		}
		return c.end()
	}},
	"reads that share lines": {"", func(n int) []byte {
		c := newChat()
		at := 0
		lines := func(from, to, step int) string {
			var b strings.Builder
			for i := from; i < to; i += step {
				fmt.Fprintf(&b, "%d\tValue%dOf()\n", i, i)
			}
			return b.String()
		}
		for ; c.Len() < n/2; at += 1400 {
			c.does("Read", fmt.Sprintf(`{"file_path":"a.go","offset":%d}`, at), lines(at, at+1400, 1))
		}
		for i := 0; c.Len() < n; i++ {
			c.does("Read", fmt.Sprintf(`{"file_path":"a.go","offset":%d}`, i), lines(i%1400, at, 1400))
		}
		return c.end()
	}},
	"files that go": {"", func(n int) []byte {
		c := newChat()
		for q := range 9 {
			var b strings.Builder
			for i := range 59 {
				fmt.Fprintf(&b, "/w/a.go:%d: Handle%dOf()\n", i+1, i)
			}
			c.does("Grep", fmt.Sprintf(`{"pattern":"Handle.*%d","path":"/w"}`, q), b.String())
		}
		var p strings.Builder
		for i := 0; p.Len() < n; i++ {
			fmt.Fprintf(&p, "*** Delete File: f%d\n", i)
		}
		c.does("apply_patch", `{"input":`+rawjson.Quote("*** Begin Patch\n"+p.String()+"*** End Patch")+`}`, "Success. Updated the following files:")
		return c.end()
	}},
	"a list of things to do": {"", func(n int) []byte {
		c := newChat()
		for c.Len() < n {
			c.does("TodoWrite", `{"todos":[`+strings.TrimSuffix(strings.Repeat(`{"content":"Do it","status":"pending"},`, 2000), ",")+`]}`, "Todos have been modified.")
		}
		return c.end()
	}},
	"failed edits": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.does("Edit", edit("a.go", fmt.Sprintf("line %d", i), strings.Repeat(fmt.Sprintf("word%d ", i), 100)), "Error: the text was not found")
		}
		return c.end()
	}},
	"the same error": {"", func(n int) []byte {
		c := newChat()
		for i := 0; c.Len() < n; i++ {
			c.does("Bash", command(fmt.Sprintf("make %d", i)), fmt.Sprintf("Exit code 2\nmake: *** [all%d] Error 1", i))
			c.does("Edit", edit("a.go", fmt.Sprintf("x%d", i), fmt.Sprintf("y%d", i)), updated)
		}
		return c.end()
	}},
	"calls of a program that runs on": {"", func(n int) []byte { return program(n, "", true) }},
	"instructions within a program": {"session", func(n int) []byte {
		return program(n, `{"type":"message","role":"developer","content":"Mind %d."},`, false)
	}},
}

// program is a request of the Responses API with a program at the provider that makes many calls of the
// client, and what stands between them.
func program(n int, between string, runs bool) []byte {
	b := bytes.NewBufferString(`{"model":"gpt-5.5","input":[{"role":"user","content":"Count."},{"type":"program","call_id":"p","code":"count()"},`)
	for i := 0; b.Len() < n; i++ {
		if between != "" {
			fmt.Fprintf(b, between, i)
		}
		fmt.Fprintf(b, `{"type":"function_call","call_id":"c%d","name":"f","arguments":"{}","caller":{"type":"program","caller_id":"p"}},{"type":"function_call_output","call_id":"c%[1]d","output":"1"},`, i)
	}
	if runs {
		b.Truncate(b.Len() - 1)
	} else {
		b.WriteString(`{"type":"program_output","call_id":"p","result":"1"},{"role":"user","content":"Go on."}`)
	}
	b.WriteString("]}")
	return b.Bytes()
}
