// Package toolclass knows the tools of common agents by name: what kind of work each does, and what
// of its calls and results is worth keeping.
package toolclass

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Class is the kind of work that a tool does. Agents have different names for tools that do much
// the same.
type Class string

// The classes. Other is for unknown tools.
const (
	Read     Class = "read"     // a file, or a part of one
	Search   Class = "search"   // lines or names that match a pattern
	List     Class = "list"     // a folder, or files by name
	Shell    Class = "shell"    // a command line
	Edit     Class = "edit"     // a change to a file that was there
	Write    Class = "write"    // a whole file
	Fetch    Class = "fetch"    // a page of the web
	Web      Class = "web"      // a search of the web
	Agent    Class = "agent"    // work given to another agent
	Todo     Class = "todo"     // the agent's own plan or task list
	Poll     Class = "poll"     // the state of something that runs
	Question Class = "question" // a question to the user
	Recall   Class = "recall"   // content that compaction externalized
	Notes    Class = "notes"    // what the model keeps of its own context
	Other    Class = ""
)

// named are the normalized names of the tools of each class: those of Claude Code, Codex,
// opencode, pi, Gemini CLI, SWE-agent, OpenHands, goose, crush, Roo and Cline, VS Code
// Copilot, of the MCP reference servers and GitHub's, and of Anthropic's text editor.
var named = map[Class]string{
	Read: `
		read readfile readtextfile readmediafile readmanyfiles readmultiplefiles view viewfile viewimage open openfile
		cat getfilecontents notebookread goto scrolldown scrollup`,
	Search: `
		grep grepfiles search searchtext searchfiles searchfilecontent searchdir searchfile searchcode codebasesearch
		codesearch ripgrep rg greps grepsearch sourcegraph lsp`,
	List: `
		ls list listdir listdirectory listdirectorywithsizes directorytree listfiles listalloweddirectories
		listcodedefinitionnames glob find findfile filesearch getfileinfo toolsearch`,
	Shell: `
		bash shell localshell shellcommand execcommand containerexec unifiedexec exec runshellcommand executecommand
		executebash cmdrun terminal runinterminal runcommand powershell runtests executeipython executeipythoncell
		ipython python codeexecution writestdin`,
	Edit: `
		edit multiedit multiedits replace editfile strreplace strreplaceeditor strreplacebasededittool texteditor
		fileeditor fileedit applypatch patch applydiff replaceinfile searchandreplace insertcontent insert
		notebookedit replacestringinfile multireplacestringinfile inserteditintofile editnotebookfile movefile`,
	Write: "write writefile writetofile filewrite create createfile createdirectory createorupdatefile newfile",
	Fetch: "webfetch fetch agenticfetch download fetchwebpage browse browser browseraction browseinteractive openurl",
	Web:   "websearch googlewebsearch bravewebsearch tavilysearch exasearch",
	Agent: `
		task agent subagent spawnagent sendinput runsubagent delegate newtask dispatchagent codebaseinvestigator
		delegatetoagent skill`,
	Todo: `
		todowrite todoread todos todo writetodos updateplan updatetodolist managetodolist taskcreate taskupdate
		tasklist taskget tasktracker exitplanmode enterplanmode`,
	Poll: `
		bashoutput taskoutput taskstop killshell killbash joboutput jobkill wait waitagent closeagent
		getterminaloutput diagnostics lspdiagnostics geterrors getchangedfiles`,
	Question: "askuserquestion question askfollowupquestion requestuserinput askuser",
	Notes:    "contextnote contextstatus compactnow palimpsestcontextnote palimpsestcontextstatus palimpsestcompactnow",
	Recall:   "readartifact recall palimpsestreadartifact palimpsestrecall", // some agents join the server's name with one underscore
}

// classes are the classes by name.
var classes = scan.Inverted(named)

// Normal returns the normalized name of a tool: lower-case letters and digits, without the prefix
// of an MCP server ("mcp__files__read_file" and "functions.Read-File" are "readfile").
func Normal(name string) string {
	if i := strings.LastIndex(name, "__"); i >= 0 && i+2 < len(name) {
		name = name[i+2:]
	}
	if i := strings.LastIndexAny(name, "./:"); i >= 0 && i+1 < len(name) {
		name = name[i+1:]
	}
	clean := true
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			clean = false
			break
		}
	}
	if clean {
		return name
	}
	out := make([]byte, 0, len(name))
	for i := range len(name) {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			out = append(out, c+'a'-'A')
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c >= 0x80:
			out = append(out, c)
		}
	}
	return string(out)
}

// ownLists are the tools with which agents keep their own plan, as each agent writes them. A list that
// another program keeps, such as an MCP server, has a name that is only like one of them.
var ownLists = scan.WordSet(`TodoWrite TodoRead todowrite todoread todo_write todo_read todos todo
	write_todos update_plan update_todo_list manage_todo_list todo__todo_write todo__todo_read
	TaskCreate TaskUpdate TaskList TaskGet task_tracker ExitPlanMode EnterPlanMode exit_plan_mode enter_plan_mode`)

// ClassOf returns the class of a tool by its name, or Other.
func ClassOf(name string) Class {
	class := classes[Normal(name)]
	if class == Todo && !ownLists[strings.TrimPrefix(name, "functions.")] {
		return Other
	}
	return class
}
