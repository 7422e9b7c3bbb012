// Package page holds the tests of the page in a real browser: Debian's chromium,
// headless, against the command as it is built. It is a module of its own, so that
// nobody else has to fetch what drives a browser.
package page
