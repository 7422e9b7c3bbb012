// Package dir keeps what was taken out of prompts in a plain directory, for one
// person on one machine:
//
//	README.txt                        the format, for whoever finds the directory
//	artifacts/<2>/<id>                content that was put aside, as it was
//	artifacts/<2>/<id>.json           what is known about it (artifact.Metadata)
//	threads/<thread>/removed.jsonl    one removed message a line (recall.Entry)
//	threads/<thread>/plans/<n>.json   the plans, 1 is the first (plan.Plan)
//	tenants/<tenant>/artifacts/…      the same for tenants, where there are any
//	answers/<2>/<hash>.json           what a model answered, a cache (store.Answers)
//	keys/                             not touched here; programs keep keys in it
//
// <2> is two digits of the id. Names of threads and tenants are escaped, so
// that none of them can lead elsewhere, and all access goes through an os.Root.
//
// # Crashes
//
// A file is written under a temporary name (.tmp-…), synced, renamed, and its
// directory synced, so it is there whole or not at all. removed.jsonl only
// grows: a line that a crash cut off is reported as Damage by whatever reads
// it, never repaired and never silently left out, and is written anew when its
// message is saved again. Save writes artifacts, then removed messages, then
// the plan: a plan that is there finds all that it hides.
//
// # Several processes
//
// There is no lock to wait for or to be left behind. Lines are appended by a
// single write to a file opened for appending, which local file systems keep
// whole; the same message written by two processes is read once. A plan takes
// the next free number by a link, which fails if the number is taken. Artifacts
// are named by their content, so two writers write the same. Do not put the
// directory on a network file system: those promise neither.
package dir
