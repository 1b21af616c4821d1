// Package browsertest tests the inspector in Chromium: the command, its page, and
// pages of others that would like to get at it.
package browsertest
