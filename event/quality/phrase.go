package quality

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Class says by what sign an agent showed that it misses something: asked_again, lost_content, reread,
// rerun, artifact_read or user_repeats.
type Class string

// The signs. The first two are found in what the agent says, the others in what
// it does; userRepeats is the user's own complaint.
const (
	// askedAgain: it asks for what it was told before.
	askedAgain Class = "asked_again"
	// lostContent: it says that it cannot see what was there: "I no longer
	// have the file contents."
	lostContent Class = "lost_content"
	// reread: it reads a file whose content was removed a short while ago.
	reread Class = "reread"
	// rerun: it runs a command, a search or a fetch whose output was removed.
	rerun Class = "rerun"
	// artifactRead: it asks for content that was externalized, by read_artifact
	// or recall.
	artifactRead Class = "artifact_read"
	// userRepeats: the user says that they said so before.
	userRepeats Class = "user_repeats"
)

// asks reports whether an agent's text asks for, or misses, something that it had before,
// and by which class of phrase. Quotations and code do not count. English is covered
// widely, German, French and Spanish in their commonest phrases. It knows nothing of a
// compaction: a Monitor does.
func asks(text string) (Class, bool) { return matchPhrases(text, agentPhrases) }

// phrase is a pattern over a folded sentence. It is tried only where one of its keys
// occurs, since most sentences contain none.
type phrase struct {
	class Class
	keys  []string
	re    func() *regexp.Regexp // compiled when it is first asked for: most programs never do
	// isQuestion: the pattern ends in a question mark.
	isQuestion bool
	// exception revokes the match.
	exception func() *regexp.Regexp
}

func newPhrase(class Class, keys, expression, not string) phrase {
	p := phrase{class: class, keys: strings.Split(keys, "|"), re: lazyregexp.New(expression), isQuestion: strings.HasSuffix(expression, `\?`)}
	if not != "" {
		p.exception = lazyregexp.New(not)
	}
	return p
}

// What a conversation leaves behind, and how it is said to be long ago.
const (
	earlier = `(?:earlier|previous|prior|preceding|past|original|initial|first|older)`
	things  = `(?:(?:tool )?(?:outputs?|results?|calls?|responses?)|contents?|conversations?|messages?|context|discussions?|chats?|instructions|exchanges?|turns?|session|history|details|figures|answers?|requests?|parts? of (?:the|our|this) (?:conversation|session|discussion|chat))`
	tell    = `(?:say|said|tell me|told me|mention(?:ed)?|specif(?:y|ied)|ask(?:ed)? (?:me )?for|give me|gave me|give|gave|provided?|shared?|want(?:ed)?|decided?|agreed?|choose|chose|picked?|settled?|set|quoted?|named?|call(?:ed)?)`
)

// agentPhrases are tried in order, the first match counts.
var agentPhrases = []phrase{
	// I no longer have the file contents / I can no longer see what you sent.
	newPhrase(lostContent, "no longer", `\bi (?:no longer (?:have|see|recall|remember|know)|can no longer (?:see|access|recall|remember|view|find|tell))\b`, `\bi no longer (?:have to|have any (?:doubt|concern|question|reason|issue)|see (?:any|a|the) (?:error|issue|problem|reason|need|failure|warning)|have (?:a reason|an? error|an? issue))|\b(?:if|when|whether|so|until) i no longer`),
	// As I can't see the earlier output / I don't have access to the previous messages.
	newPhrase(lostContent, "i don't|i do not|i can't|i cannot|i'm not able|i am not able|i'm unable|i am unable|i currently don't", `\bi (?:currently |also |really |unfortunately |actually )?(?:don't|do not|can't|cannot|am not able to|am unable to) (?:currently |actually |directly |really |seem to )?(?:have|see|access|recall|remember|view|find|retrieve|look at|read)\b[^?!;]{0,40}?\b(?:the|your|our|that|those|any|my|of) (?:\w+ )?`+earlier+` (?:\w+ ){0,2}`+things+`\b`, `\b(?:if|when|whether|so that) i (?:don't|do not|can't|cannot)|\bany (?:first|original|initial)`),
	newPhrase(lostContent, "i'm not able|i'm unable|i'm no longer", `\bi'm (?:not able|unable|no longer able) to (?:see|access|recall|remember|view|retrieve|look at)\b[^?!;]{0,40}?\b`+earlier+` (?:\w+ ){0,2}`+things+`\b`, ``),
	// I don't have it in my context any more.
	newPhrase(lostContent, "anymore|any more|any longer", `\bi (?:don't|do not|can't|cannot) (?:have|see|recall|remember|access|view)\b[^?!]{0,80}\b(?:anymore|any more|any longer)\b`, `\b(?:if|when|whether|so that) i |\b(?:error|warning|failure|issue|problem|crash)s?\b`),
	newPhrase(lostContent, "context|conversation|memory|history", `\b(?:not|no longer|isn't|aren't|wasn't|nothing|gone|missing|absent) (?:\w+ ){0,3}?(?:in|within|from|part of) (?:my|our|what i have of our) (?:current |available |visible |working |active |remaining )?(?:context|conversation|memory|history)\b`, ``),
	newPhrase(lostContent, "my context|my memory|my conversation|my working memory|from context|my window", `\b(?:cleared|truncated|compacted|summari[sz]ed|removed|dropped|lost|trimmed|evicted|pruned|cut|fell|fallen|gone|scrolled|missing|vanished|disappeared|rolled) (?:\w+ ){0,3}?(?:from|out of|of|in) (?:my (?:\w+ )?(?:context|memory|conversation|history|window)|context (?:by|during|after|when))\b`, ``),
	newPhrase(lostContent, "my context|my memory|my history|my working memory|our conversation|the conversation|context was|context has|context got", `\b(?:since|because|as|after|now that|given that|seems|looks like|it appears|unfortunately,?) (?:that )?(?:my|our|the) (?:(?:earlier|previous|prior) )?(?:working )?(?:context|memory|history|conversation|session) (?:was|has been|got|is|just got) (?:just |been |recently |partly |partially )?(?:compacted|truncated|cleared|reset|summari[sz]ed|lost|trimmed|cut)\b`, ``),
	newPhrase(lostContent, "i lost|i've lost|i have lost|i seem to have lost|i may have lost|i must have lost|i think i lost", `\bi(?:'ve| have| seem to have| may have| might have| must have| think i)? lost (?:the|my|that|those|all|track of|access to|sight of|some|part of)(?: \w+){0,4}? (?:context|conversation|contents?|outputs?|results?|details|messages?|discussion|history|what|earlier|previous)\b`, ``),
	newPhrase(lostContent, "memory of|record of|recollection of|trace of|knowledge of", `\b(?:i )?(?:don't|do not|no longer|have no|without|haven't) (?:have )?(?:any |a |no |clear )*(?:memory|record|recollection|trace|knowledge) of (?:(?:our|the|that|this|your|any) )?(?:(?:\w+ )?`+earlier+`|what (?:you|we|was)|our|the conversation|you )`, ``),
	newPhrase(lostContent, "i don't remember|i do not remember|i can't remember|i cannot remember|i don't recall|i do not recall|i can't recall|i cannot recall|i've forgotten|i have forgotten|i forgot|i seem to have forgotten", `\bi (?:(?:don't|do not|can't|cannot) (?:quite |exactly |fully )?(?:remember|recall)|(?:have |seem to have )?(?:forgotten|forgot)) (?:the (?:exact|contents?|details|specifics|values?|names?|numbers?|output|result|rest)|what|which|where|who|how (?:much|many)|your|our|that file|its contents?)\b|\bi've forgotten (?:the|what|which|where|who|how (?:much|many)|your)\b`, `\bforgot(?:ten)? (?:the|your) (?:semicolon|import|comma|bracket|return|await)`),
	newPhrase(lostContent, "not shown|not visible|not available|longer visible|longer available|longer accessible|isn't visible|aren't visible|isn't available|aren't available|isn't included|unavailable to me|visible to me|available to me|accessible to me", `\b(?:(?:earlier|previous|prior) (?:\w+ ){0,2}`+things+`|what you (?:said|told me|sent|shared|pasted) (?:earlier|before)) (?:is|are|was|were)?(?:n't| not| no longer) (?:\w+ )?(?:visible|available|accessible|included|shown)\b`, ``),
	newPhrase(lostContent, " since | because | as ", `\bi(?:'ll| will|'d| would| need to| have to| must|'m going to| should| want to|'ve got to)[^?!]{0,60}(?:re-?read|read\b[^?!]{0,40}\bagain|re-?run|run\b[^?!]{0,40}\bagain|re-?fetch|re-?open|look\b[^?!]{0,40}\bagain|look up)\b[^?!]{0,60}\b(?:since|because|as)\b[^?!]{0,60}\b(?:context|no longer|lost|compact\w*|(?:was|were|been|got) (?:cleared|truncated|summari[sz]ed|removed|trimmed))\b`, ``),

	// Could you remind me …
	newPhrase(askedAgain, "remind me|reminding me", `\b(?:(?:could|can|would|will) (?:you|someone)(?: please| kindly)?(?: quickly)? (?:just )?remind me|please(?: do)? remind me|(?:would|do) you mind reminding me|(?:need|want|like) you to remind me|^remind me|just remind me)\b`, `\bremind me (?:to|at|in|tomorrow|every)\b`),
	// What was the user's budget again?
	newPhrase(askedAgain, "again", `\b(?:what|which|who|where|how much|how many|when)(?: \w+){0,2}?(?:'s|'re| was| were| is| are| did you say| did you want)\b[^?]{0,90}\bagain ?\?`, `\b(?:run|runs|running|try|tried|trying|fail|fails|failed|failing|happen|happens|happening|start|starts|started|starting|test|tested|call|called|calling|check|checked|build|built|deploy|deployed|use|used|do|done|doing|going|wrong|here|read|render\w*|trigger\w*|open\w*|reset|broken|back|come|comes|seen?|change[sd]?|updated?) again ?\?`),
	// What did you say about …?
	newPhrase(askedAgain, "did you|did the user|did we|had you|had the user|had we|did they", `\b(?:what|which|who|where|how much|how many)\b[^?]{0,60}?\b(?:did|had) (?:you|the user|we|they) (?:originally |initially |previously |earlier |first |already )?`+tell+`\b[^?]{0,90}\?`, `\bdid (?:you|they) want (?:me |us |it )?to\b|\b(?:did|had) (?:you|they|we) (?:set|choose|chose|pick|want|call|name|give)\b[^?]{0,30}\b(?:when|now|instead|next)\b`),
	// What was the limit you mentioned earlier? / Which name had we agreed on?
	newPhrase(askedAgain, "earlier|before|previously|originally|at the start|at the beginning", `\b(?:what|which|who|where|how much|how many)\b(?:'s| is| was| were| are)?[^?]{0,80}\b(?:you|we|the user|they) (?:had |have |'d )?(?:originally |initially |previously |earlier |first |already )?`+tell+`\b[^?]{0,40}\b(?:earlier|before|previously|originally|at the (?:start|beginning))\b[^?]{0,20}\?`, `\bbefore (?:i|we|you|they|the|that|it|going|doing|making|moving|proceeding)\b`),
	newPhrase(askedAgain, " was | were ", `\b(?:what|which|who|where|how much|how many) (?:was|were)\b[^?]{0,60}\b(?:you|we|the user) (?:had |have |'d )?(?:originally |initially |previously |earlier )?(?:said|told me|mentioned|specified|asked (?:me )?for|gave me|shared|wanted|decided on|agreed on|agreed|chose|picked|settled on)\b[^?]{0,40}\?`, ``),
	newPhrase(askedAgain, "was it|were it|was that|were they|were those", `\b(?:what|which(?: \w+){0,2}|who|where) (?:exactly )?(?:was|were) (?:it|that|they|those) (?:again|you (?:wanted|said|asked|mentioned|needed))\b`, ``),
	// Could you paste it once more / resend / repeat what you said?
	newPhrase(askedAgain, "repeat|restate|reiterate|re-share|reshare|resend|re-send|re-post|repost|re-paste|repaste|re-upload|reupload", `\b(?:could|can|would|will) you(?: please| kindly)?(?: just)? (?:repeat|restate|reiterate|re-?share|re-?send|re-?post|re-?paste|re-?upload)\b|\bplease (?:repeat|restate|reiterate|re-?share|re-?send|re-?post|re-?paste|re-?upload) (?:the|your|that|what|those|it|them)\b`, `\b(?:repeat|resend|re-send) (?:the (?:test|process|steps?|request|call|command|payment|email|code|verification|invite|experiment|same))\b`),
	newPhrase(askedAgain, "again|once more|one more time", `\b(?:could|can|would|will) you(?: please| kindly)?(?: just)? (?:share|paste|send|post|tell|show|state|upload|give)\b[^?]{0,80}\b(?:again|once more|one more time) ?\?`, ``),
	newPhrase(askedAgain, "again|once more|one more time", `\bplease (?:share|paste|send|post|tell me|show me|state|upload|give me)\b[^?!]{0,80}\b(?:again|once more|one more time)\b`, ``),

	// German.
	newPhrase(lostContent, "nicht mehr|keinen zugriff|kein zugriff|nicht auf", `\b(?:ich (?:\p{L}+ ){0,2}?(?:habe|sehe|kenne|weiß|erinnere|finde)|(?:habe|sehe|kenne|weiß) ich|liegt mir|liegen mir|steht mir|stehen mir|kann ich|ich kann)\b[^?!]{0,80}\bnicht mehr\b(?:[^?!]{0,40}\b(?:sehen|vor|zugreifen|einsehen|kontext|verfügung|verfügbar|erinnern|habe|im blick|parat|lesen)\b)?`, `\bnicht mehr (?:nötig|notwendig|gebraucht|benötigt|reproduzieren)|\bich sehe (?:den |die |das |keine )?(?:fehler|warnung)`),
	newPhrase(lostContent, "zugriff", `\bkeinen zugriff (?:mehr )?auf (?:die|den|das|unsere?n?|deine?n?|ihre?n?) (?:frühere?n?|vorherige?n?|bisherige?n?|vorige?n?|ältere?n?|ursprüngliche?n?)\b`, ``),
	newPhrase(askedAgain, "erinner", `\b(?:(?:kannst|könntest|würdest) du|(?:können|könnten|würden) sie)\b[^?!]{0,40}\bmich\b[^?!]{0,60}\berinnern\b|\berinner[en]? (?:mich|sie mich)\b`, `\berinner[en]? (?:sie )?mich\b[^?!]{0,20}\b(?:morgen|um \d|täglich)`),
	newPhrase(askedAgain, "noch mal|nochmal|nochmals|gleich|noch einmal|noch ", `\b(?:was|wie|wer|wo|welche[rsnm]?|wie viel|wie viele) (?:\p{L}+ )?(?:war|waren|hieß|hießen|lautete|lauteten)\b[^?]{0,50}\b(?:noch ?mals?|gleich|noch einmal|noch)\b[^?]{0,60}\?`, ``),
	newPhrase(askedAgain, "hattest du|hatten sie|hast du|haben sie", `\b(?:was|welche[rsnm]?(?: \p{L}+)?|wo|wen|wie viel) (?:hattest du|hatten sie|hast du|haben sie)\b[^?]{0,80}\b(?:gesagt|genannt|erwähnt|vorgegeben|geschrieben|mitgeteilt|gewünscht)\b`, ``),

	// French.
	newPhrase(lostContent, "n'ai plus|ne vois plus|ne me souviens|ne retrouve plus|ne me rappelle|n'ai pas accès|ne dispose plus", `\bje (?:n'ai plus (?:accès|le|la|les|l'|sous les yeux|en mémoire|ce|cette|ces|votre|ton|ta)|ne (?:vois|retrouve) plus|ne (?:me souviens|me rappelle) (?:plus|pas)|ne dispose plus|n'ai pas accès (?:aux?|à la|à l') ?(?:\p{L}+ ){0,3}(?:précédente?s?|antérieure?s?|d'avant))`, `\bne vois plus (?:d'erreur|aucun|l'erreur)`),
	newPhrase(askedAgain, "rappel", `\b(?:pouvez-vous|pourriez-vous|peux-tu|pourrais-tu|tu peux|vous pouvez|merci de) (?:\p{L}+ )?me (?:rappeler|redonner|répéter)\b|\brappel(?:ez|le)-moi\b`, `\brappel(?:ez|le)-moi (?:de|d'|demain)`),
	newPhrase(askedAgain, "redonner|répéter", `\b(?:pouvez-vous|pourriez-vous|peux-tu|pourrais-tu) me (?:redonner|répéter)\b`, ``),
	newPhrase(askedAgain, "déjà", `\b(?:quel(?:le)?s?|c'était quoi|qui|où|combien)\b[^?]{0,80}\bdéjà ?\?`, `\b(?:existe|fait|présent|installé|utilisé)e?s? déjà`),
	newPhrase(askedAgain, "aviez-vous|avais-tu|avez-vous|as-tu", `\b(?:qu'|que |quel(?:le)?s? (?:\p{L}+ )?)(?:aviez-vous|avais-tu|avez-vous|as-tu)\b[^?]{0,20}\b(?:dit|indiqué|mentionné|précisé|demandé)\b`, ``),

	// Spanish.
	newPhrase(lostContent, "ya no|no recuerdo|no tengo acceso", `\b(?:ya no (?:tengo (?:acceso|el|la|los|las|ese|esa|en)|veo (?:el|la|los|las|lo)|recuerdo|puedo ver|dispongo)|no recuerdo (?:el|la|los|las|lo|qué|cuál|cuánto)|no tengo acceso a(?:l| la| los| las) (?:\p{L}+ ){0,3}(?:anterior|anteriores|previ[oa]s?))\b`, `\bya no veo (?:el|los) (?:error|errores|fallo)`),
	newPhrase(askedAgain, "record", `\b(?:puedes?|podrías?|podría usted|me puedes?|me podrías?) (?:por favor )?(?:recordarme|recordar)\b|\bme recuerdas?\b|\brecuérda(?:me|nos)\b`, `\brecuérdame (?:que|mañana|a las)\b`),
	newPhrase(askedAgain, "otra vez|de nuevo|era ", `(?:cuál|qué|cuánto|quién|dónde|cómo) (?:era|eran|fue|fueron|se llamaba)\b[^?]{0,70}\b(?:otra vez|de nuevo|que (?:dijiste|mencionaste|me diste|querías)) ?\?`, ``),
	newPhrase(askedAgain, "dijiste|dijo usted|habías dicho|mencionaste|me dijo", `(?:qué|cuál|cuánto) (?:me )?(?:habías dicho|dijiste|dijo usted|mencionaste|dijo)\b`, ``),
}

var userPhrases = []phrase{
	newPhrase(userRepeats, "already|before|told you|said", `\bi(?:'ve| have)? (?:already|just) (?:told|gave|given|said|sent|shared|explained|mentioned|answered|pasted|provided)\b|\b(?:as|like) i(?:'ve| have)? (?:already |just )?(?:said|told you|mentioned|explained|wrote)(?: \w+){0,2}? ?(?:before|earlier|already|above|\b)|\bi told you (?:that |this |so |already|before|earlier)|\bhow many times do i\b|\b(?:did you|have you|you) (?:already )?(?:forget|forgot|forgotten) (?:what|that|the|about|my|already)\b|\bwe(?:'ve| have)? already (?:discussed|talked about|covered|decided|agreed)\b`, ``),
	newPhrase(userRepeats, "bereits|schon|doch", `\bich (?:habe|hab|hatte)\b[^?!]{0,40}\b(?:bereits|schon|doch)\b[^?!]{0,30}\b(?:gesagt|geschrieben|genannt|erklärt|geschickt)\b|\bwie (?:bereits|schon) (?:gesagt|erwähnt|geschrieben)\b`, ``),
	newPhrase(userRepeats, "déjà", `\bje (?:vous |te |t'|l')?(?:l')?(?:ai|avais) déjà (?:dit|donné|expliqué|envoyé)\b|\bcomme je (?:l'ai|vous l'ai|te l'ai) déjà dit\b`, ``),
	newPhrase(userRepeats, "ya ", `\bya (?:te|se|le|os)? ?(?:lo )?(?:he |había )?(?:dije|dicho|di|dado|expliqué|envié)\b|\bcomo ya dije\b`, ``),
}

func matchPhrases(text string, phrases []phrase) (Class, bool) {
	found := Class("")
	sentences(text, func(s string) bool {
		question := strings.HasSuffix(s, "?")
		for i := range phrases {
			p := &phrases[i]
			if p.isQuestion && !question || !slices.ContainsFunc(p.keys, func(k string) bool { return strings.Contains(s, k) }) || !p.re().MatchString(s) || p.exception != nil && p.exception().MatchString(s) {
				continue
			}
			found = p.class
			return false
		}
		return true
	})
	return found, found != ""
}

// maxSentence bounds a sentence, in bytes; nobody asks in a longer one, and a wall of text
// must not cost more than its length.
const maxSentence = 600

// sentences yields the folded sentences of what the speaker says himself, without code and
// quotations: lower case, straight apostrophes, single spaces.
func sentences(text string, yield func(string) bool) {
	for line := range scan.Prose(text) {
		if line == "" || line[0] == '>' || line[0] == '|' {
			continue
		}
		line = fold(line)
		for line != "" {
			end := sentenceEnd(line)
			if s := strings.TrimSpace(line[:end]); s != "" && len(s) <= maxSentence && !yield(s) {
				return
			}
			line = line[end:]
		}
	}
}

// sentenceEnd is where the first sentence of s ends: after a mark that is followed by a
// space, or at the end.
func sentenceEnd(s string) int {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c == '.' || c == '?' || c == '!') && (i+1 == len(s) || s[i+1] == ' ') {
			return i + 1
		}
	}
	return len(s)
}

// closing maps quotation marks to those that close them. A straight single quote is an
// apostrophe as often as not, and stays.
var closing = map[rune]rune{'"': '"', '“': '”', '„': '“', '«': '»', '`': '`'}

// fold simplifies one line.
func fold(line string) string {
	var b strings.Builder
	b.Grow(len(line))
	space := false
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		if end, ok := closing[r]; ok {
			if n := strings.IndexRune(line[i+size:], end); n >= 0 {
				i += size + n + utf8.RuneLen(end)
				b.WriteString(" … ") // something stood here
				space = true
				continue
			}
		}
		i += size
		switch r {
		case '’', '‘', 'ʼ':
			r = '\''
		case '*', '_', '#', '¿', '¡':
			continue
		case ' ', '\t', 0xa0, 0x202f:
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		}
		space = false
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
