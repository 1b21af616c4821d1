package transport

import (
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Variables that every child process inherits, as names and as prefixes of names: user and
// directories, proxies, certificates, locale. On Windows the case of names does not matter.
var (
	unixVariables    = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "TMPDIR", "XDG_*"}
	windowsVariables = []string{"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
		"PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE"}
	commonVariables = []string{
		"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
		"npm_config_*", "NPM_CONFIG_*",
		"LANG", "LANGUAGE", "LC_*", "TZ",
	}
)

// knownVariables are variables that servers often need and that no child gets
// by default: they name code to load, or something else that only the user can
// check. What seems to be a secret is treated in the same way. They are
// reported as withheld.
var knownVariables = []string{
	"NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "JAVA_HOME", "JAVA_TOOL_OPTIONS",
	"GOPROXY", "GOFLAGS", "GOPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSH_AUTH_SOCK", "DOCKER_HOST", "DOCKER_CONFIG", "KUBECONFIG",
	"AWS_PROFILE", "AWS_REGION", "GOOGLE_APPLICATION_CREDENTIALS", "DATABASE_URL", "DISPLAY", "WAYLAND_DISPLAY",
}

// secretWords are parts of the names of variables that hold secrets. Those that
// begin with an underscore count at the end of a name only.
var secretWords = []string{"TOKEN", "PASSWORD", "PASSWD", "SECRET", "CREDENTIAL", "COOKIE", "APIKEY", "_AUTH", "_OTP", "_KEY", "_CERT"}

// passes reports whether a child gets a variable.
func passes(name, value string) bool {
	own := unixVariables
	if runtime.GOOS == "windows" {
		own = windowsVariables
	}
	return (matches(own, name) || matches(commonVariables, name)) && !secret(name, value) &&
		!strings.HasPrefix(value, "()") // a function of the shell, which it would run
}

// secret reports whether a variable may hold a secret: because of its name, or
// because its value is a URL with user information.
func secret(name, value string) bool {
	upper := strings.ToUpper(name)
	for _, word := range secretWords {
		// Only the end counts for short words: npm_config_keyfile is a path, as is
		// SSL_CERT_FILE.
		if short := word[0] == '_'; strings.HasSuffix(upper, word) || !short && strings.Contains(upper, word) {
			return true
		}
	}
	if !strings.Contains(value, "@") {
		return false
	}
	if !strings.Contains(value, "://") { // as proxies may be written
		value = "http://" + value
	}
	u, err := url.Parse(value)
	return err != nil || u.User != nil
}

// matches reports whether a name matches one of the patterns, which may end in
// '*'. On Windows case is ignored.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if runtime.GOOS == "windows" {
			pattern, name = strings.ToUpper(pattern), strings.ToUpper(name)
		}
		head, open := strings.CutSuffix(pattern, "*")
		return name == head || open && strings.HasPrefix(name, head)
	})
}

// commandEnv returns the environment of a child process, and the names of those
// variables of this process that the child may miss, sorted.
func commandEnv(extra []string) (env, withheld []string) {
	env = []string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name == "": // Windows has such
		case passes(name, value):
			env = append(env, entry)
		case hasVariable(extra, name), value == "":
		case matches(knownVariables, name), matches(commonVariables, name), secret(name, ""):
			withheld = append(withheld, name)
		}
	}
	slices.Sort(withheld)
	return append(env, extra...), withheld // of two with one name, os/exec takes the last
}

// hasVariable reports whether an environment sets a variable.
func hasVariable(env []string, name string) bool {
	return slices.ContainsFunc(env, func(entry string) bool {
		key, _, _ := strings.Cut(entry, "=")
		return sameVariable(key, name)
	})
}

// sameVariable compares the names of variables, on Windows without regard to
// case.
func sameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

// envValue returns the value of a variable, "" if it is not there.
func envValue(env []string, name string) (value string) {
	for _, entry := range env {
		if key, text, _ := strings.Cut(entry, "="); sameVariable(key, name) {
			value = text
		}
	}
	return value
}
