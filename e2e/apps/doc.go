// Package apps tests views in a browser: Chromium, headless, has a host page with the
// official AppBridge and client of npm, a sandbox proxy on another origin, as the
// extension asks for, and in that the view. Servers are those of this module.
package apps
