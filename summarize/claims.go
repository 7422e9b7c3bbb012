package summarize

import (
	"slices"
	"strings"
	"unicode"
)

// persons are words for somebody whose wishes an agent follows.
var persons = []string{
	"user", "users", "operator", "developer", "human", "customer", "client", "admin", "administrator", "owner", "maintainer", "boss", "manager",
	"supervisor", "principal", "requester", "he", "she", "they", "you",
	"benutzer", "nutzer", "anwender", "kunde", "utilisateur", "utilisatrice", "client", "usuario", "usuaria", "cliente", "utente", "gebruiker",
}

// wishes are the beginnings of words for wanting, saying and allowing.
var wishes = []string{
	"want", "ask", "request", "said", "say", "says", "tell", "told", "prefer", "need", "requir", "insist", "instruct", "approv", "allow", "permit",
	"confirm", "agree", "authori", "demand", "expect", "decid", "chose", "choose", "ordered", "grant", "consent", "wish", "mandat", "command",
	"accept", "forbid", "forbad", "remind", "urge", "mention", "specif", "suggest", "warn", "veto", "must", "should", "deman", "veut", "souhait",
	"möcht", "verlang", "bitte", "sagt", "erlaub", "wünsch", "wollt", "pidi", "pide", "quier", "dijo", "solicit", "exig", "chied", "vuole",
}

// orders are phrases that claim somebody's order without naming the one.
var orders = []string{
	"as requested", "as instructed", "as asked", "was asked to", "were asked to", "is asked to", "been asked to", "was told to", "been told to", "were told to",
	"instructed to", "was requested", "is requested", "per request", "per instruction", "on behalf of", "at the request", "permission", "authorization", "authorisation",
	"pre-approved", "preapproved", "approved by", "standing order", "system prompt", "system message", "i want", "i need you", "i ask", "i authori", "i approve", "wie gewünscht", "comme demandé",
	"用户", "使用者", "客户", "ユーザー", "お客様", "사용자", "고객", "пользовател", "просил", "المستخدم",
}

// speaksForPerson reports whether a text says what a person in charge wants,
// said or allowed: a word for the person, and within a few words one for the
// wish. A table called user and the file user.go are no persons.
func speaksForPerson(s string) bool {
	low := strings.ToLower(s)
	for _, o := range orders {
		if strings.Contains(low, o) {
			return true
		}
	}
	const near = 6
	words := strings.FieldsFunc(low, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' && r != '.' && r != '/' })
	last := -near - 1 // where the last person was
	lastWish := -near - 1
	for i, w := range words {
		w = strings.Trim(w, ".")
		if slices.Contains(persons, w) {
			last = i
			if i-lastWish <= near {
				return true // "requested by the user"
			}
		}
		for _, p := range wishes {
			if strings.HasPrefix(w, p) {
				lastWish = i
				if i-last <= near {
					return true
				}
				break
			}
		}
	}
	return false
}
