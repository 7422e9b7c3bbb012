package quality_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/event/quality"
)

// A22: what agents say when they miss what was removed.
func TestAsks(t *testing.T) {
	tests := []struct {
		class quality.Class
		says  string
	}{
		{quality.AskedAgain, `What was the user's budget again?
			Before I book: what was the departure date again?
			Sorry, which branch were we on again?
			What's the account number again?
			Who was the reviewer again?
			Could you remind me which port the gateway listens on?
			Can you please remind me of the deadline?
			Please remind me what the second requirement was.
			Remind me, which of the two tables holds invoices?
			Would you mind reminding me what the cut-off date is?
			What did you say about the retry limit?
			What did the user say about refunds?
			How many seats did you originally ask for?
			Which colour had we agreed on for the header?
			What was the limit you mentioned?
			Which region was it you wanted?
			Which naming scheme did we settle on, and what were the prefixes you specified?
			What is the path you gave me earlier?
			Could you repeat the acceptance criteria?
			Can you re-send the stack trace?
			Could you please paste the schema once more?
			Please share the configuration again so that I can continue.
			**What was** the *project code* again?
			Kannst du mich bitte noch einmal an das Budget erinnern?
			Könnten Sie mich daran erinnern, welche Version im Einsatz ist?
			Wie war noch mal der Name des Servers?
			Was war gleich die Obergrenze?
			Was hattest du zum Zeitlimit gesagt?
			Pouvez-vous me rappeler le budget prévu ?
			Rappelle-moi le nom du serveur.
			Quel était le nom de la branche, déjà ?
			Qu'aviez-vous dit au sujet du délai ?
			¿Podrías recordarme el presupuesto?
			¿Cuál era el nombre del servidor otra vez?
			¿Qué dijiste sobre el plazo?`},
		{quality.LostContent, `I no longer have the file contents, so I will look at it afresh.
			I no longer have access to the log you pasted.
			I can no longer see the diff from before.
			As I can't see the earlier output, I cannot say which test it was.
			I don't have access to the previous messages.
			Unfortunately, I do not have the original instructions at hand.
			I don't see our earlier discussion, so I cannot tell what was decided.
			I'm unable to access the previous conversation.
			I don't have that file in view anymore.
			The listing is no longer in my context.
			That table isn't in my current context, I would have to query it.
			The contents were cleared from my context.
			Since my context was compacted, I need the ticket number.
			It seems the conversation has been truncated, and with it the plan.
			I seem to have lost the earlier context of this task.
			I've lost track of what we found in the first module.
			I have no memory of our previous session.
			I don't have any record of what you asked.
			I don't remember the exact value of the threshold.
			I can't recall which endpoint failed.
			I've forgotten what the second constraint was.
			I'll need to re-read config.yaml since it was cleared.
			Let me be honest: I have to read the module again because I no longer see it.
			The earlier tool output is no longer visible.
			Ich habe den Inhalt der Datei leider nicht mehr vorliegen.
			Die frühere Ausgabe liegt mir nicht mehr vor.
			Ich habe keinen Zugriff auf die vorherigen Nachrichten.
			Je n'ai plus accès au contenu du fichier.
			Je ne vois plus la sortie de la commande.
			Ya no tengo acceso al archivo.
			No recuerdo cuál era el límite.`},
	}
	for _, test := range tests {
		for says := range strings.Lines(test.says) {
			says = strings.TrimSpace(says)
			if got, ok := quality.Asks(says); !ok || got != test.class {
				t.Errorf("Asks(%q) = %q, want %q", says, got, test.class)
			}
			// In the midst of a message it is found as well.
			if got, _ := quality.Asks("All tests pass now.\n\n- Next step: the report. " + says + " Then I will go on."); got != test.class {
				t.Errorf("in a message, Asks(%q) = %q, want %q", says, got, test.class)
			}
			if strings.ContainsAny(says, "\"`") {
				continue
			}
			if got, ok := quality.Asks("The page says \"" + says + "\" at the top."); ok {
				t.Errorf("a quotation of %q is taken for %q", says, got)
			}
			if got, ok := quality.Asks("The test data:\n```\n" + says + "\n```\ndone"); ok {
				t.Errorf("code that holds %q is taken for %q", says, got)
			}
		}
	}
}

// Ordinary questions and reports are not asking for what was removed.
func TestOrdinaryTalk(t *testing.T) {
	for says := range strings.Lines(`Which database do you use?
		What is your budget?
		Could you tell me which version you need?
		Could you share your user id, please?
		Should I run the tests again?
		What happens if it is called again?
		What should we do when the upload fails again?
		Where is the cache filled when the job is started again?
		Can you try again with a shorter name?
		I could not find that order. Could you check the number?
		Let me read the file again to verify the edit.
		I'll re-run the tests to confirm the fix.
		I'll run it again because the first run timed out.
		I will remind you before the deadline.
		The user wants a button that says remind me to drink water.
		The app can remind me at noon; that is what the story asks for.
		I don't see any errors in the previous run.
		I no longer see any failures.
		I no longer have any concerns about the migration.
		We no longer need the old handler.
		The server no longer has access to the bucket.
		The previous implementation was removed.
		The original file is not available in this repository.
		I don't have permission to push.
		I don't have access to your calendar.
		I cannot access the internet from here.
		I don't have a preference.
		The key is not in the map.
		If I no longer have the lock, the writer gives up.
		Messages are removed from the conversation when it grows too long.
		The cache lost the entry when the process ended.
		As you said, the limit is fifty.
		You mentioned a deadline earlier, so I kept the change small.
		What did the tests print?
		What did you want to name the new package?
		I forgot to add the import.
		I forgot the semicolon.
		Which of these did you want next?
		Do you want me to continue?
		How did the earlier version handle this?
		The summary was truncated to 80 characters.
		The output was truncated, so I narrowed the search.
		Previously, what we said before any retry was logged.
		Welche Datenbank benutzt ihr?
		Die Funktion wird nicht mehr gebraucht.
		Ich sehe keine Fehler mehr.
		Soll ich es noch einmal versuchen?
		Quelle base de données utilisez-vous ?
		Le fichier existe déjà.
		Je ne vois plus d'erreur.
		¿Qué base de datos usas?
		El error ya no aparece.`) {
		says = strings.TrimSpace(says)
		if got, ok := quality.Asks(says); ok {
			t.Errorf("Asks(%q) = %q, want nothing", says, got)
		}
	}
}
