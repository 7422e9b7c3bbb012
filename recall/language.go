package recall

import (
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/russian"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// stopWords are the words of a question that say nothing about what is sought, by language.
var stopWords = scan.WordSet(
	// English
	`a about after again all also am an and any are as at be because been before being but by can could d did do does doing
	don down during each for from further had has have having he her here hers herself him himself his how i if in into is it
	its itself just ll m may me might mine more most must my myself no nor not now of off on once only or other our ours
	ourselves out over own re s same shall she should so some such t than that the their theirs them themselves then there
	these they this those through to too under until up ve very was we were what when where which while who whom whose why
	will with would you your yours yourself yourselves ` +
		// German
		`aber als am auch auf aus bei bin bis das dass dem den der des die doch ein eine einem einen einer er es für hat hatte ich
	ihr im in ist ja kann mein mit nach nicht noch nur oder sich sie sind so über um und uns unser vom von vor wann war waren
	warum was wer werden wie wir wird wo wurde zu zum zur ` +
		// French
		`au aux avec ce ces cette comme dans de des du elle en est et eu il ils je la le les leur lui mais mes moi mon ne nos notre
	nous on ou où par pas plus pour quand que quel quelle qui quoi sa sans se ses son sont sur ta te tes ton tu un une vos
	votre vous à été ` +
		// Spanish
		`al como con cuando cuándo cuál de del dónde el ella en entre era es esta este está fue ha hay la las le lo los me mi muy no
	nos para pero por porque que qué quién se sin sobre su sus también te tu un una y ya`,
)

// askingWords ask for something, and it says nothing that no text has them.
var askingWords = scan.WordSet(`describe exactly explain find happened look mention mentioned please recall remember remind say said show
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

// stem returns what the forms of an English or a Russian word in small letters have in common: "decided" and
// "deciding" give "decid". Other words, and anything with a figure, stay as they are. A stem is its own.
func stem(word string) string {
	if first, is := irregular[word]; is {
		word = first
	}
	stemmer := english.Stem
	for _, r := range word {
		switch {
		case 'a' <= r && r <= 'z':
		case 'а' <= r && r <= 'ё':
			stemmer = russian.Stem
		default:
			return word
		}
	}
	env := snowballstem.NewEnv(word)
	for before := len(word) + 1; len(env.Current()) < before; {
		before = len(env.Current())
		env.SetCurrent(env.Current())
		stemmer(env)
	}
	return env.Current()
}
