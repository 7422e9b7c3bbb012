package toolpolicy

import "strings"

// Class says what kind of work a tool does. Names differ between agents, the
// dozen things that their tools do hardly differ.
type Class string

// The classes. Other is a tool that the table does not know.
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
	Other    Class = ""
)

// classes maps normalised tool names to what they do. Agents in comments: C
// Claude Code, X Codex, O opencode, P pi, G Gemini CLI, S SWE-agent, H OpenHands,
// M the MCP reference servers, K crush, R Roo and Cline, V VS Code Copilot.
var classes = map[string]Class{
	"read":              Read, // C O P
	"readfile":          Read, // G M R V
	"readtextfile":      Read, // M
	"readmediafile":     Read, // M
	"readmanyfiles":     Read, // G
	"readmultiplefiles": Read, // M
	"view":              Read, // K
	"viewfile":          Read,
	"viewimage":         Read, // X
	"open":              Read, // S
	"openfile":          Read, // S
	"cat":               Read,
	"getfilecontents":   Read, // GitHub server
	"notebookread":      Read, // C
	"goto":              Read, // S
	"scrolldown":        Read, // S
	"scrollup":          Read, // S

	"grep":              Search, // C O P K X
	"grepfiles":         Search, // X
	"search":            Search,
	"searchtext":        Search,
	"searchfiles":       Search, // M R
	"searchfilecontent": Search, // G
	"searchdir":         Search, // S
	"searchfile":        Search, // S
	"searchcode":        Search,
	"codebasesearch":    Search, // R
	"codesearch":        Search, // O
	"ripgrep":           Search,
	"rg":                Search,
	"greps":             Search,
	"grepsearch":        Search, // V
	"sourcegraph":       Search, // K
	"lsp":               Search, // C

	"ls":                      List, // C K P
	"list":                    List, // O
	"listdir":                 List, // X V
	"listdirectory":           List, // G M
	"listdirectorywithsizes":  List, // M
	"directorytree":           List, // M
	"listfiles":               List, // R
	"listalloweddirectories":  List, // M
	"listcodedefinitionnames": List, // R
	"glob":                    List, // C O G K
	"find":                    List, // P
	"findfile":                List, // S
	"filesearch":              List, // V
	"getfileinfo":             List, // M
	"toolsearch":              List, // C

	"bash":               Shell, // C O P K S
	"shell":              Shell, // X
	"localshell":         Shell, // X
	"shellcommand":       Shell, // X
	"execcommand":        Shell, // X
	"containerexec":      Shell, // X
	"unifiedexec":        Shell, // X
	"exec":               Shell, // X
	"runshellcommand":    Shell, // G
	"executecommand":     Shell, // R
	"executebash":        Shell, // H
	"cmdrun":             Shell, // H
	"terminal":           Shell, // H
	"runinterminal":      Shell, // V
	"runcommand":         Shell,
	"powershell":         Shell,
	"runtests":           Shell, // V
	"executeipython":     Shell, // H
	"executeipythoncell": Shell, // H
	"ipython":            Shell, // H
	"python":             Shell,
	"codeexecution":      Shell,
	"writestdin":         Shell, // X

	"edit":                     Edit, // C O P K S G
	"multiedit":                Edit, // C K
	"multiedits":               Edit,
	"replace":                  Edit, // G
	"editfile":                 Edit, // M V
	"strreplace":               Edit,
	"strreplaceeditor":         Edit, // S H
	"strreplacebasededittool":  Edit, // Anthropic text editor
	"texteditor":               Edit, // goose
	"fileeditor":               Edit, // H
	"fileedit":                 Edit, // H
	"applypatch":               Edit, // X O
	"patch":                    Edit, // O
	"applydiff":                Edit, // R
	"replaceinfile":            Edit, // R
	"searchandreplace":         Edit, // R
	"insertcontent":            Edit, // R
	"insert":                   Edit, // S
	"notebookedit":             Edit, // C
	"replacestringinfile":      Edit, // V
	"multireplacestringinfile": Edit, // V
	"inserteditintofile":       Edit, // V
	"editnotebookfile":         Edit, // V
	"movefile":                 Edit, // M

	"write":              Write, // C O P K
	"writefile":          Write, // G M
	"writetofile":        Write, // R
	"filewrite":          Write, // H
	"create":             Write, // S
	"createfile":         Write, // V
	"createdirectory":    Write, // M
	"createorupdatefile": Write, // GitHub server
	"newfile":            Write,

	"webfetch":          Fetch, // C O G
	"fetch":             Fetch, // M K
	"agenticfetch":      Fetch, // K
	"download":          Fetch, // K
	"fetchwebpage":      Fetch, // V
	"browse":            Fetch,
	"browser":           Fetch, // H
	"browseraction":     Fetch, // R
	"browseinteractive": Fetch, // H
	"openurl":           Fetch,

	"websearch":       Web, // C O X
	"googlewebsearch": Web, // G
	"bravewebsearch":  Web, // M
	"tavilysearch":    Web,
	"exasearch":       Web,

	"task":                 Agent, // C O
	"agent":                Agent, // C K
	"subagent":             Agent,
	"spawnagent":           Agent, // X
	"sendinput":            Agent, // X
	"runsubagent":          Agent, // V
	"delegate":             Agent, // H
	"newtask":              Agent, // R
	"dispatchagent":        Agent,
	"codebaseinvestigator": Agent, // G
	"delegatetoagent":      Agent, // G
	"skill":                Agent, // C O

	"todowrite":      Todo, // C O
	"todoread":       Todo, // C O
	"todos":          Todo, // K
	"todo":           Todo,
	"writetodos":     Todo, // G
	"updateplan":     Todo, // X
	"updatetodolist": Todo, // R
	"managetodolist": Todo, // V
	"taskcreate":     Todo, // C
	"taskupdate":     Todo, // C
	"tasklist":       Todo, // C
	"taskget":        Todo, // C
	"tasktracker":    Todo, // H
	"exitplanmode":   Todo, // C
	"enterplanmode":  Todo, // C

	"bashoutput":        Poll, // C
	"taskoutput":        Poll, // C
	"taskstop":          Poll, // C
	"killshell":         Poll, // C
	"killbash":          Poll, // C
	"joboutput":         Poll, // K
	"jobkill":           Poll, // K
	"wait":              Poll, // X
	"waitagent":         Poll, // X
	"closeagent":        Poll, // X
	"getterminaloutput": Poll, // V
	"diagnostics":       Poll, // K
	"lspdiagnostics":    Poll, // K O
	"geterrors":         Poll, // V
	"getchangedfiles":   Poll, // V

	"askuserquestion":     Question, // C
	"question":            Question, // O
	"askfollowupquestion": Question, // R
	"requestuserinput":    Question, // X
	"askuser":             Question, // G

	"readartifact": Recall,
	"recall":       Recall,
}

// Normal returns the form of a tool name in which tables are searched: lower
// case letters and digits only, the prefix of an MCP server cut off
// ("mcp__files__read_file" and "functions.Read-File" are "readfile").
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

// ClassOf returns what a tool does, found by its name alone, or Other. A
// server's tool of an unknown name stays Other even if it sounds like one of
// ours.
func ClassOf(name string) Class { return classes[Normal(name)] }
