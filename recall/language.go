package recall

import "strings"

// stopWords are the words of a question that say nothing about what is sought, by language.
var stopWords = wordSet(
	// English
	`a about after again all also am an and any are as at be because been before being but by can could d did do does doing
	don down during each for from further had has have having he her here hers herself him himself his how i if in into is it
	its itself just ll m may me might mine more most must my myself no nor not now of off on once only or other our ours
	ourselves out over own re s same shall she should so some such t than that the their theirs them themselves then there
	these they this those through to too under until up ve very was we were what when where which while who whom whose why
	will with would you your yours yourself yourselves`,
	// German
	`aber als am auch auf aus bei bin bis das dass dem den der des die doch ein eine einem einen einer er es für hat hatte ich
	ihr im in ist ja kann mein mit nach nicht noch nur oder sich sie sind so über um und uns unser vom von vor wann war waren
	warum was wer werden wie wir wird wo wurde zu zum zur`,
	// French
	`au aux avec ce ces cette comme dans de des du elle en est et eu il ils je la le les leur lui mais mes moi mon ne nos notre
	nous on ou où par pas plus pour quand que quel quelle qui quoi sa sans se ses son sont sur ta te tes ton tu un une vos
	votre vous à été`,
	// Spanish
	`al como con cuando cuándo cuál de del dónde el ella en entre era es esta este está fue ha hay la las le lo los me mi muy no
	nos para pero por porque que qué quién se sin sobre su sus también te tu un una y ya`,
)

// askingWords ask for something, and it says nothing that no text has them.
var askingWords = wordSet(`describe exactly explain find happened look mention mentioned please recall remember remind say said show
	tell told`)

// irregular are the forms of words that share no stem, by the first of them.
var irregular = formTable(`become became, begin began begun, break broke broken, bring brought, build built, buy bought, catch caught, child
	children, choose chose chosen, draw drew drawn, drive drove driven, eat ate eaten, fall fell fallen, feel felt, fight
	fought, find found, fly flew flown, foot feet, forget forgot forgotten, get got gotten, give gave given, go went gone,
	grow grew grown, hear heard, hide hid hidden, hold held, keep kept, know knew known, lead led, learn learnt, leave
	left, lose lost, make made, man men, mean meant, meet met, mouse mice, pay paid, person people, ride rode ridden, rise
	rose risen, run ran, say said, see saw seen, sell sold, send sent, shake shook shaken, sing sang sung, sleep slept,
	speak spoke spoken, spend spent, stand stood, steal stole stolen, swim swam swum, take took taken, teach taught, tell
	told, think thought, throw threw thrown, tooth teeth, wake woke woken, wear wore worn, win won, woman women, write
	wrote written`)

func wordSet(lists ...string) map[string]bool {
	set := map[string]bool{}
	for _, list := range lists {
		for word := range strings.FieldsSeq(list) {
			set[word] = true
		}
	}
	return set
}

// formTable reads words with their other forms, with commas between: each form gives the word.
func formTable(table string) map[string]string {
	first := map[string]string{}
	for line := range strings.SplitSeq(table, ",") {
		forms := strings.Fields(line)
		for _, form := range forms[1:] {
			first[form] = forms[0]
		}
	}
	return first
}

// The endings of the stemmer of Porter, "An algorithm for suffix stripping" (1980): what the ending
// becomes where the rest has a syllable (derived), and what falls where it has two (endings). Of
// several that fit the longest counts.
var (
	derived = [2][][2]string{
		{{"ational", "ate"}, {"ization", "ize"}, {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"tional", "tion"}, {"biliti", "ble"}, {"entli", "ent"},
			{"ousli", "ous"}, {"ation", "ate"}, {"alism", "al"}, {"aliti", "al"}, {"iviti", "ive"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"}, {"abli", "able"},
			{"alli", "al"}, {"ator", "ate"}, {"eli", "e"}},
		{{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ness", ""}, {"ful", ""}},
	}
	endings = strings.Fields("ement ance ence able ible ment ant ent sion tion ism ate iti ous ive ize al er ic ou")
)

// stem returns what the forms of an English word in small letters have in common: "decided" and
// "deciding" give "decid". Other words, and anything with a figure or another letter, stay as they are.
// A stem is its own, so that "focused" meets "focus", which looks like a plural itself.
func stem(word string) string {
	for first := true; ; first = false {
		w := stemOnce(word)
		if !first && len(w) >= len(word) {
			return w
		}
		word = w
	}
}

func stemOnce(word string) string {
	if first, is := irregular[word]; is {
		word = first
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	if len(word) < 3 {
		return word
	}
	w := stemPlural(word)
	w = stemVerb(w)
	if rest, is := strings.CutSuffix(w, "y"); is && hasVowel(rest) {
		w = rest + "i"
	}
	for _, table := range derived {
		for _, d := range table {
			if rest, is := strings.CutSuffix(w, d[0]); is {
				if syllables(rest) > 0 {
					w = rest + d[1]
				}
				break
			}
		}
	}
	for _, ending := range endings {
		if rest, is := strings.CutSuffix(w, ending); is {
			if strings.HasSuffix(ending, "ion") {
				rest += ending[:1]
			}
			if syllables(rest) > 1 {
				w = rest
			}
			break
		}
	}
	if rest, is := strings.CutSuffix(w, "e"); is {
		if n := syllables(rest); n > 1 || n == 1 && !isShort(rest) {
			w = rest
		}
	}
	if strings.HasSuffix(w, "ll") && syllables(w) > 1 {
		w = w[:len(w)-1]
	}
	return w
}

func stemPlural(w string) string {
	switch {
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ies"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"):
		return w[:len(w)-1]
	}
	return w
}

// stemVerb takes "ed" and "ing" off, and mends what is left: hoping, hop and hope.
func stemVerb(w string) string {
	if rest, is := strings.CutSuffix(w, "eed"); is {
		if syllables(rest) > 0 {
			return rest + "ee"
		}
		return w
	}
	rest, is := strings.CutSuffix(w, "ed")
	if !is {
		rest, is = strings.CutSuffix(w, "ing")
	}
	if !is || !hasVowel(rest) {
		return w
	}
	n := len(rest)
	switch {
	case strings.HasSuffix(rest, "at"), strings.HasSuffix(rest, "bl"), strings.HasSuffix(rest, "iz"):
		return rest + "e"
	case n > 1 && rest[n-1] == rest[n-2] && isConsonant(rest, n-1) && !strings.Contains("lsz", rest[n-1:]):
		return rest[:n-1]
	case syllables(rest) == 1 && isShort(rest):
		return rest + "e"
	}
	return rest
}

func isConsonant(w string, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !isConsonant(w, i-1)
	}
	return true
}

func hasVowel(w string) bool {
	for i := range len(w) {
		if !isConsonant(w, i) {
			return true
		}
	}
	return false
}

// syllables counts the vowels of a word that a consonant follows, those beside each other as one.
func syllables(w string) int {
	n, before := 0, true
	for i := range len(w) {
		c := isConsonant(w, i)
		if c && !before {
			n++
		}
		before = c
	}
	return n
}

// isShort reports whether a word ends like "hop": its last vowel between consonants.
func isShort(w string) bool {
	n := len(w)
	return n > 2 && isConsonant(w, n-1) && !isConsonant(w, n-2) && isConsonant(w, n-3) && !strings.Contains("wxy", w[n-1:])
}
