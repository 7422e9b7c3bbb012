package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
)

// agentRun runs an agent behind its own proxy. All fields but policyName are flags.
type agentRun struct {
	options                   proxy.Options
	policy, summarizer, favor string
	policyName                string // the name of the policy that was found
	store                     storeFlag
	keep                      bool // in the usual store
	contextTools, quiet       bool
	notes                     runNotes
	room                      runRoom
}

func runCommand(s Streams) *cobra.Command {
	var r agentRun
	c := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run an agent inside its context window",
		Long: `Run an agent through its own proxy, on a free port of this machine. Run sets the base
URLs that agents read (Claude Code, Codex, opencode, Gemini CLI, aider, and everything
made with the providers' SDKs) and passes on input, output, signals and exit status, which is
127 if there is no such program. Two lines at the start say where requests go, which window applies and when they are
compacted. Each compaction adds a line, and so does what fails, at the end if the agent
draws on the same terminal. A line at the end says what was saved, of all requests together.

The default upstream is the base URL in the environment, else the provider's own.

Conversations are kept in memory and forgotten at the end. With --keep or --store they are
kept: an agent that resumes a session finds what was removed, and continues with the same
prompt, which its provider may still have in its cache. The last line says how to see them.`,
		Example: `  palimpsest run -- claude
  palimpsest run --window 120k -- codex exec "fix the failing test"
  palimpsest run --keep -- claude --continue`,
		Args: nonBlankArgs("want a COMMAND after --"),
		RunE: func(c *cobra.Command, args []string) error {
			// Not as defaults of the flags, which the help shows: an address may hold a key.
			for flag, from := range map[string]struct {
				to       *string
				variable string
			}{
				"anthropic-upstream": {&r.options.Anthropic, "ANTHROPIC_BASE_URL"},
				"openai-upstream":    {&r.options.OpenAI, "OPENAI_BASE_URL"},
				"gemini-upstream":    {&r.options.Gemini, "GOOGLE_GEMINI_BASE_URL"},
			} {
				if !c.Flags().Changed(flag) {
					*from.to = os.Getenv(from.variable)
				}
			}
			if r.keep && !c.Flags().Changed("store") {
				r.store.name = ""
			}
			return r.run(c.Context(), args, s)
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.StringVar(&r.options.Anthropic, "anthropic-upstream", "", "send requests of the Anthropic API to `URL` (without /v1)")
	f.StringVar(&r.options.OpenAI, "openai-upstream", "", "send requests of the OpenAI APIs to `URL` (with /v1)")
	f.StringVar(&r.options.Gemini, "gemini-upstream", "", "send requests of the Gemini API to `URL` (without a version)")
	f.StringVar(&r.policy, "policy", "auto", "compact by `POLICY`: a file (see \"palimpsest policy\"), or "+strings.Join(policyfile.Names(), ", "))
	f.StringVar(&r.favor, "favor", "", "compact near the window (quality), from 64,000 tokens on (balanced), or when it costs least (cost): `WHAT` the policies auto and notes favor (default: the policy's, else balanced)")
	f.StringVar(&r.summarizer, "summarizer", "", "who writes summaries: extractive (no model), agent (the agent's own model, with its key), anthropic:MODEL, openai:MODEL, or a `CHAIN` of them joined by commas (default: the policy's, else extractive)")
	f.Var((*tokensFlag)(&r.options.Window), "window", "assume that every model, also one in the table, has a context window of this many `TOKENS`, such as 120k; a smaller one that a provider names in a refusal replaces it, a larger one never (default: each model's own, from the table or a refusal)")
	f.StringSliceVar(&r.options.Emulate, "emulate", nil, "answer requests for native compaction here, for upstreams of these `APIS` that do not support it: anthropic, openai")
	f.BoolVar(&r.keep, "keep", false, "keep conversations in the usual store, where explain, recall, threads and undo find them by themselves")
	f.StringVar(&r.store.name, "store", inMemory, "keep conversations and plans in `STORE`: memory:, a SQLite FILE or postgres://…")
	f.StringVar(&r.store.tenant, "tenant", "", "whose conversations, in a store of several tenants: `NAME`")
	f.BoolVar(&r.options.NoTools, "no-tools", false, "offer the model no tools to read what was removed")
	f.BoolVar(&r.quiet, "quiet", false, "say only what fails")
	f.BoolVar(&r.contextTools, "context-tools", false, "offer the model context_status, context_note and compact_now, in every request")
	return c
}

// exitStatus is the exit status of the agent, which run passes on.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// errNoProgram is wrapped by the error about an agent whose program is not there.
var errNoProgram = errors.New("the program is not found: is it installed, and in a folder of PATH?")

func (r *agentRun) run(ctx context.Context, args []string, s Streams) (err error) {
	if _, err := exec.LookPath(args[0]); errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) { // before anything is opened
		return fmt.Errorf("%s: %w", args[0], errNoProgram)
	}
	if w := r.options.Window; w > 0 && w < 1000 { // no model has less
		return fmt.Errorf("%w: --window %d: want 1,000 tokens or more", errUsage, w)
	}
	silenceHTTPLog()
	chosen, err := r.choosePolicy()
	if err != nil {
		return err
	}
	masks, err := settingsMask()
	if err != nil {
		return err
	}
	if r.options.Secret, err = loadSecret(len(r.options.Emulate) > 0); err != nil {
		fmt.Fprintf(s.Err, "palimpsest: a later run will not know the compactions that are emulated now: %v\n", err)
	}
	db, err := r.store.open(ctx, false)
	if err != nil {
		return fmt.Errorf("nowhere to keep conversations (see --store): %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	config, kept := &r.options.Config, db.forTenant(r.store.tenant)
	r.notes = runNotes{documents: kept.Documents, books: map[string][]plan.Note{}}
	config.Store = kept.Tenant
	config.Store.Documents = &r.notes
	if r.contextTools {
		config.Recall = &palimpsest.Recall{ContextTools: true, Rehydrate: recall.Rehydration{Disabled: true}} // as the proxy has it
	}
	lines, counts := &deferredLines{w: s.Err, masks: masks, hold: sharesTerminal(s)}, &event.Counters{}
	report, told := s.Err, lines.print
	if r.quiet {
		report, told = io.Discard, func(event.Event, string) {}
	}
	config.Events = event.Multi(newAnnouncer(told), newTroubles(lines.print), counts, &r.room)

	var p *proxy.Proxy
	jobs := job.NewMemory(job.Handlers{proxy.CompactJob: func(ctx context.Context, j job.Job) error { return p.Work(ctx, j) }}, nil)
	defer func() {
		canceled, cancel := context.WithCancel(ctx)
		cancel() // the agent is gone, so do not wait for its jobs
		_ = jobs.Stop(canceled)
	}()
	config.Jobs = jobs
	if p, err = proxy.New(&r.options); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	fmt.Fprintf(report, "palimpsest: %s\npalimpsest: %s\n", r.startLine(p.Upstreams()), describePolicy(chosen.Settings, r.options.Window, token.UsualRates()))
	began := time.Now()
	status, err := runBehind(ctx, p, args, s)
	lines.flush()
	if err != nil {
		return err
	}
	now := counts.Figures()
	for _, line := range []string{
		r.endLine(p.Totals(), p.Upstreams()), leftOutLine(int(now.Sum("summary_sentences")), now.By("summary_left_out", "cause")), r.keptLine(ctx, kept, began),
	} {
		if line != "" {
			fmt.Fprintf(report, "palimpsest: %s\n", line)
		}
	}
	if status != 0 {
		return exitStatus(status)
	}
	return nil
}

// choosePolicy sets what depends on the policy.
func (r *agentRun) choosePolicy() (*setup.Policy, error) {
	chosen, err := setup.Open(r.policy, &setup.Options{Summarizer: r.summarizer, Favor: r.favor, AllowAgent: true})
	if err != nil {
		return nil, err
	}
	r.policyName = chosen.Settings.Name()
	counter, err := token.New("o200k", nil)
	if err != nil {
		return nil, err
	}
	r.options.Config = chosen.Config(counter)
	if chosen.UsesAgentModel() {
		r.options.Agent = setup.AgentModel
	}
	r.options.Config.Counter, err = chosen.Counter("") // nil is each model's own
	return chosen, err
}

// runBehind runs the agent behind the proxy and returns its exit status.
func runBehind(ctx context.Context, p *proxy.Proxy, args []string, s Streams) (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	server := daemon.HTTPServer(daemon.LocalOnly(p), 0)
	served := make(chan error, 1)
	go func() { served <- server.Serve(daemon.CheckHeaders(listener)) }()
	status, err := runChild(ctx, args, "http://"+listener.Addr().String(), s)
	server.Close()
	if closed := <-served; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	return status, err
}

// runChild runs the agent and returns its exit status.
func runChild(ctx context.Context, args []string, base string, s Streams) (int, error) {
	args, env := withProxyURLs(args, base, os.Environ())
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, underlyingWriter(s.Out), s.Err
	if i, ok := s.In.(*interruptibleReader); ok { // the agent reads standard input itself
		cmd.Stdin = i.r
	}
	cmd.WaitDelay = time.Second // standard input may never end
	signals := make(chan os.Signal, 8)
	signal.Reset(os.Interrupt, syscall.SIGTERM) // a second one means something to the agent
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := ctx.Err(); err != nil { // the signal came before the line above
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("%s cannot be started: %w", args[0], err)
	}
	ended := make(chan struct{})
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		forwardSignals(cmd.Process, signals, ended, isTerminalFile(cmd.Stdin))
	}()
	err := cmd.Wait()
	close(ended)
	<-passed
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		if code := exit.ExitCode(); code >= 0 {
			return code, nil
		}
		if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
			return 128 + int(w.Signal()), nil // like a shell
		}
		return exitFailed, nil
	case errors.Is(err, exec.ErrWaitDelay):
		return cmd.ProcessState.ExitCode(), nil
	}
	return 0, err
}

// forwardSignals passes signals on to the agent until it ends. At a terminal the agent gets
// Ctrl-C itself, and a second one would mean something else. An agent that a second signal does not
// end is killed.
func forwardSignals(agent *os.Process, signals <-chan os.Signal, ended <-chan struct{}, atTerminal bool) {
	var patience <-chan time.Time
	for sent := 0; ; {
		select {
		case got := <-signals:
			if got == os.Interrupt && atTerminal {
				continue
			}
			_ = agent.Signal(got) // it may have ended meanwhile
			if sent++; sent == 2 {
				patience = time.After(lastGrace)
			}
		case <-patience:
			_ = agent.Kill()
		case <-ended:
			return
		}
	}
}

// lastGrace is how long the agent has to end after a second signal.
const lastGrace = 500 * time.Millisecond

func (r *agentRun) policyPhrase() string {
	if r.options.Window > 0 {
		return fmt.Sprintf("policy %s, window %s tokens", r.policyName, number(r.options.Window))
	}
	return fmt.Sprintf("policy %s, each model's own window", r.policyName)
}

// startLine says how requests are compacted and where they go.
func (r *agentRun) startLine(upstreams []proxy.Upstream) string {
	to := joinEach(upstreams, func(u proxy.Upstream) string { return u.URL })
	kept := "memory"
	if r.store.lasts() {
		kept = r.store.displayName()
	}
	return fmt.Sprintf("%s, kept in %s; requests go to %s", r.policyPhrase(), kept, to)
}

func (r *agentRun) endLine(t proxy.Totals, upstreams []proxy.Upstream) string {
	if t.Requests == 0 {
		return "no request came through the proxy: does the agent take its base URL from the environment?"
	}
	used := slices.DeleteFunc(slices.Clone(upstreams), func(u proxy.Upstream) bool { return u.Requests == 0 })
	line := plural(int(t.Requests), "request")
	if len(used) == 1 {
		line += " to " + used[0].URL
	} else {
		line += " (" + joinEach(used, func(u proxy.Upstream) string { return number(int(u.Requests)) + " to " + u.URL }) + ")"
	}
	rest := "all"
	if t.Unanswered > 0 && t.Unanswered < t.Requests {
		line, rest = line+", "+number(int(t.Unanswered))+" of them unanswered", "the others"
	}
	switch {
	case t.Unanswered == t.Requests:
		line += ", none answered"
	case t.Edited == 0:
		line += ", " + rest + " passed on unchanged (" + r.policyPhrase() + ")"
	default:
		line += fmt.Sprintf(", %s made smaller (%s): together about %s tokens became %s", number(int(t.Edited)), r.policyPhrase(), number(int(t.TokensBefore)), number(int(t.TokensSent)))
		line += ", " + plural(int(t.Compactions), "compaction")
	}
	if room := r.room.phrase(); room != "" && t.Unanswered < t.Requests {
		line += ", " + room
	}
	if noted := notesPhrase(r.notes.all()); noted != "" {
		line += ", " + noted + " of the model"
	}
	if t.Faults > 0 {
		line += ", " + plural(int(t.Faults), "internal error") + " (request passed on unchanged)"
	}
	return line
}

// keptLine says where the conversations are that changed since began, and how to see the longest; empty for a store that
// does not last.
func (r *agentRun) keptLine(ctx context.Context, k *tenantStore, began time.Time) string {
	if !r.store.lasts() {
		return ""
	}
	all, err := care.AllThreads(ctx, k.Catalog)
	all = slices.DeleteFunc(all, func(i store.Info) bool { return i.Changed.Before(began) })
	if err != nil {
		return ""
	}
	if len(all) == 0 {
		return "nothing new was stored in " + r.store.displayName() + "; what is there: palimpsest threads" + r.store.anywhere().arguments()
	}
	longest := slices.MaxFunc(all, func(a, b store.Info) int { return a.Messages - b.Messages })
	line := "kept in " + r.store.displayName() + "; to see it: " + r.store.explainCommand(longest.ID)
	if more := len(all) - 1; more > 0 {
		line += fmt.Sprintf("; %d more: palimpsest threads%s", more, r.store.anywhere().arguments())
	}
	return line
}

// withProxyURLs returns a command and an environment in which all base URLs that agents read
// are the proxy's.
func withProxyURLs(args []string, base string, env []string) ([]string, []string) {
	set := func(name, value string) {
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		env = append(env, name+"="+value)
	}
	env = slices.Clone(env)
	for _, name := range []string{
		"ANTHROPIC_BASE_URL", // Claude Code and Anthropic's SDKs
		"ANTHROPIC_API_BASE", // LiteLLM, and so aider
		"GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE",
	} {
		set(name, base)
	}
	for _, name := range []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"} { // OpenAI's SDKs, now and before
		set(name, base+"/v1")
	}
	switch name := strings.TrimSuffix(filepath.Base(args[0]), ".exe"); name {
	case "codex":
		// Its built-in provider ignores the variable.
		args = slices.Insert(slices.Clone(args), 1, "-c", "openai_base_url="+rawjson.Quote(base+"/v1"))
	case "opencode":
		if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, opencodeConfig+"=") }) {
			set(opencodeConfig, `{"provider":{"anthropic":{"options":{"baseURL":`+rawjson.Quote(base+"/v1")+`}},"openai":{"options":{"baseURL":`+rawjson.Quote(base+"/v1")+
				`}},"google":{"options":{"baseURL":`+rawjson.Quote(base+"/v1beta")+`}}}}`)
		}
	}
	return args, env
}

// opencodeConfig is the variable that opencode merges into its configuration.
const opencodeConfig = "OPENCODE_CONFIG_CONTENT"
