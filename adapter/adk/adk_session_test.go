package adk

import (
	"testing"

	"google.golang.org/adk/agent"
)

// named is what a context of ADK says of whose call it is.
type named struct {
	agent.ReadonlyContext
	app, user, session, branch, agent string
}

func (n named) AppName() string   { return n.app }
func (n named) UserID() string    { return n.user }
func (n named) SessionID() string { return n.session }
func (n named) Branch() string    { return n.branch }
func (n named) AgentName() string { return n.agent }

// A slash in a name must not make one user's session that of another.
func TestSessionsApart(t *testing.T) {
	seen := map[string]named{}
	for _, n := range []named{
		{app: "app", user: "a/b", session: "c"}, {app: "app", user: "a", session: "b/c"}, {app: "app/a", user: "b", session: "c"},
		{app: "app", user: "a%2Fb", session: "c"}, {app: "app", user: "a%252Fb", session: "c"},
		{app: "app", user: "a", session: "b", branch: "c/d", agent: "e"}, {app: "app", user: "a", session: "b", branch: "c", agent: "d/e"},
	} {
		id := session(n)
		if other, twice := seen[id]; twice {
			t.Errorf("%+v and %+v are both %q", n, other, id)
		}
		seen[id] = n
	}
	// Logs that are stored keep their name.
	if id := session(named{app: "shop", user: "ann@example.com", session: "s 1", branch: "root.buyer", agent: "buyer"}); id != "shop/ann@example.com/s 1/root.buyer/buyer" {
		t.Errorf("a plain session is %q", id)
	}
}
