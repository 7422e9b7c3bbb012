package recall

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// period is a time that a question names; until is not in it.
type period struct{ from, until time.Time }

// months are the beginnings of the names of months, in English, German, French and Spanish.
var months = formTable(`january jan januar janvier enero, february feb februar février febrero, march mar märz mars marzo, april apr avril
	abril, may mai mayo, june jun juni juin junio, july jul juli juillet julio, august aug août agosto, september sep sept
	septembre septiembre, october oct oktober octobre octubre, november nov novembre noviembre, december dec dezember
	décembre diciembre`)

// beforeNow are words, as wordsOf gives them, for a time before now, with how many days ago it begins and ends.
var beforeNow = []struct {
	words       string
	from, until int
}{
	{"today", 0, -1}, {"this morning", 0, -1}, {"heute", 0, -1}, {"aujourd hui", 0, -1}, {"hoy", 0, -1},
	{"yesterday", 1, 0}, {"last night", 1, 0}, {"gestern", 1, 0}, {"hier soir", 1, 0}, {"ayer", 1, 0},
	{"this week", 7, -1}, {"diese woche", 7, -1}, {"cette semaine", 7, -1}, {"esta semana", 7, -1},
	{"last week", 14, 4}, {"letzte woche", 14, 4}, {"semaine dernière", 14, 4}, {"semana pasada", 14, 4},
	{"last month", 62, 20}, {"letzten monat", 62, 20}, {"mois dernier", 62, 20}, {"mes pasado", 62, 20},
}

const (
	// nearPeriod is how long before and after a period is still near it: what happened is told
	// later, and plans are told before.
	nearPeriod = 7 * 24 * time.Hour
	// periodWeight is the weight of a period beside that of a term.
	periodWeight = 3
)

// periodOf returns the time that a question names, as a day, a month or by its distance from now.
// A month or a day without a year is the last one before now.
func periodOf(query string, now time.Time) (p period, ok bool) {
	words := wordsOf(query)
	whole := " " + strings.Join(words, " ") + " "
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	for _, b := range beforeNow {
		if strings.Contains(whole, " "+b.words+" ") {
			return period{day.AddDate(0, 0, -b.from), day.AddDate(0, 0, -b.until)}, true
		}
	}
	for n, word := range words {
		if at, err := time.ParseInLocation(time.DateOnly, word, now.Location()); err == nil {
			return period{at, at.AddDate(0, 0, 1)}, true
		}
		month := monthOf(word)
		if month == 0 {
			continue
		}
		number := func(at int) int {
			if at < 0 || at >= len(words) {
				return 0
			}
			n, _ := strconv.Atoi(strings.TrimRight(words[at], "stndrh"))
			return n
		}
		day, year := number(n-1), number(n+1)
		if 0 < year && year < 32 {
			day, year = year, number(n+2)
		}
		if day > 31 {
			day = 0
		}
		if day == 0 && year == 0 && (n == 0 || !strings.Contains(" in on of since during last early late by im am en de ", " "+words[n-1]+" ")) {
			continue // "may" is a word, and "march" one
		}
		if year < 1970 || year > 9999 {
			if year = now.Year(); month > now.Month() {
				year--
			}
		}
		if day > 0 {
			from := time.Date(year, month, day, 0, 0, 0, 0, now.Location())
			return period{from, from.AddDate(0, 0, 1)}, true
		}
		from := time.Date(year, month, 1, 0, 0, 0, 0, now.Location())
		return period{from, from.AddDate(0, 1, 0)}, true
	}
	return period{}, false
}

// wordsOf are the words of a question in small letters, and its numbers and dates.
func wordsOf(query string) []string {
	return strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return r != '-' && !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
	})
}

// monthOf is the month of a name, 0 for other words.
func monthOf(word string) time.Month {
	if first, is := months[word]; is {
		word = first
	}
	for m := time.January; m <= time.December; m++ {
		if strings.ToLower(m.String()) == word {
			return m
		}
	}
	return 0
}

// nearness is 1 in a period, and less before and after it.
func (p period) nearness(t time.Time) float64 {
	away := max(p.from.Sub(t), t.Sub(p.until), 0)
	if t.IsZero() {
		return 0
	}
	return math.Max(0, 1-float64(away)/float64(nearPeriod))
}
