// Package browser opens the inspector's page in a headless Chromium, clicks through it and looks at what is there. It
// is a module of its own, since chromedp is a dependency. Without a Chromium its tests are skipped.
//
// With SCREENSHOTS=dir in the environment the tests leave there what they saw.
package browser
