package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// services are what the task is about, in the order that the user gives.
var services = strings.Fields("mail ledger search billing gateway quota audit cache media export import notify render relay roster sched store tasks trace usage vault webhook")

// customers have tickets, which the user names on the way.
var customers = strings.Fields("Brandt Okafor Lindqvist Moreau Sato")

// steps is the number of calls that the task needs: for each service one to read
// its manifest, one to run its checks, one to write its lock.
var steps = 3 * len(services)

// pauses are the steps after which the agent asks whether to go on.
var pauses = []int{12, 22, 34, 44, 56}

const (
	tag    = "R-7F3K"
	signer = "Maren Oduya, key MO-4417"
)

func taskText() string {
	n := len(services)
	return fmt.Sprintf(`Make release %s of our %d services. Work through the steps one by one, in the order of the list, and begin each answer with the number of the step, as in "Step N of %d".
Steps 1 to %d: read_manifest of each service. Steps %d to %d: run_checks of each service. Steps %d to %d: write_lock of each service.
A lock names the checksum and the port from the manifest and the build from the checks, exactly as they stand there.
Every lock must be signed off by %s.
Services: %s.
When you ask me whether to go on I will tell you the tickets of our customers: %s. At the end report the tag of the release and the ticket of each customer.`,
		tag, n, steps, n, n+1, 2*n, 2*n+1, steps, signer, strings.Join(services, ", "), strings.Join(customers, ", "))
}

// note is what the user says after the i-th pause.
func note(i int) string {
	return fmt.Sprintf("Go on. The ticket of %s is %s.", customers[i], ticket(customers[i]))
}

func code(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + " of " + name))
	return fmt.Sprintf("%x", sum[:6])
}

func ticket(customer string) string  { return "TCK-" + strings.ToUpper(code("ticket", customer)) }
func checksum(service string) string { return code("checksum", service) }
func build(service string) string    { return "b" + code("build", service) }
func port(service string) string {
	sum := sha256.Sum256([]byte(service))
	return fmt.Sprint(20000 + int(sum[0])*100 + int(sum[1])%100)
}

// tool is one of the agent's tools; all parameters are texts and required.
type tool struct {
	name, description string
	parameters        []string
}

var taskTools = []tool{
	{"read_manifest", "Reads the manifest of a service.", []string{"service"}},
	{"run_checks", "Runs the checks of a service and builds it.", []string{"service"}},
	{"write_lock", "Writes the lock file of a service.", []string{"service", "checksum", "port", "build", "signed_off"}},
}

// world is what the tools work on. It checks what the agent does.
type world struct {
	read, checked, locked []string
	wrong                 []string
}

// run answers a call of a tool.
func (w *world) run(c thread.ToolCall) thread.Message {
	var args map[string]string
	if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
		w.wrong = append(w.wrong, fmt.Sprintf("%s: arguments %q: %v", c.Name, c.Arguments, err))
	}
	s, text := args["service"], ""
	switch c.Name {
	case "read_manifest":
		w.read = append(w.read, s)
		text = manifest(s)
	case "run_checks":
		w.checked = append(w.checked, s)
		text = checks(s)
	case "write_lock":
		w.locked = append(w.locked, s)
		text = "The lock of " + s + " was written."
		want := map[string]string{"service": s, "checksum": checksum(s), "port": port(s), "build": build(s), "signed_off": signer}
		for name, value := range want {
			if args[name] != value {
				w.wrong = append(w.wrong, fmt.Sprintf("the lock of %s has %s %q, not %q", s, name, args[name], value))
			}
		}
	default:
		w.wrong = append(w.wrong, "call of "+c.Name)
	}
	return result(c, thread.ToolResult{Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}}})
}

func result(c thread.ToolCall, r thread.ToolResult) thread.Message {
	r.CallID, r.Tool = c.ID, c.Name
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{r}}
}

// problems says what the agent did wrong, with its last words.
func (w *world) problems(report string) []string {
	list := w.wrong
	for what, got := range map[string][]string{"read": w.read, "checked": w.checked, "locked": w.locked} {
		if !slices.Equal(got, services) {
			list = append(list, fmt.Sprintf("%s were %v", what, got))
		}
	}
	if !strings.Contains(report, tag) {
		list = append(list, fmt.Sprintf("the report does not name %s: %q", tag, report))
	}
	for _, c := range customers {
		if !strings.Contains(report, c+": "+ticket(c)) {
			list = append(list, fmt.Sprintf("the report does not name the ticket of %s: %q", c, report))
		}
	}
	return list
}

// manifest is several kilobytes, with the facts in the middle.
func manifest(service string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: release/v1\nkind: Manifest\nservice: %s\nlayers:\n", service)
	layers(&b, service, 0, 8)
	fmt.Fprintf(&b, "checksum of %s: %s\nport of %s: %s\nvolumes:\n", service, checksum(service), service, port(service))
	layers(&b, service, 8, 16)
	return b.String()
}

// layers are lines that look as if they mattered.
func layers(b *strings.Builder, service string, from, to int) {
	for i := from; i < to; i++ {
		fmt.Fprintf(b, "  - name: %s-layer-%02d\n    digest: sha256:%s\n    size: %d\n    created: by the nightly job from the main branch, after the review of its changes\n    comment: shared with the other services of the same team, see the handbook for who may change it\n",
			service, i, code("layer", fmt.Sprint(service, i)), (i+1)*4096)
	}
}

// checks is what a run of the checks prints.
func checks(service string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "$ make check build SERVICE=%s\n", service)
	for i := range 30 {
		fmt.Fprintf(&b, "ok  \t%s/internal/part%02d\t%d.%03ds\tcoverage: %d.%d%% of statements\n", service, i, i%3, (i*317+len(service)*71)%1000, 60+(i*7)%40, i%10)
		if i == 20 {
			fmt.Fprintf(&b, "build of %s: %s\n", service, build(service))
		}
	}
	fmt.Fprintf(&b, "30 packages, no failures\n")
	return b.String()
}
