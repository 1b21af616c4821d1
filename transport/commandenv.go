package transport

import (
	"os"
	"runtime"
	"strings"
)

// safeVariables are what every child process gets of this one's environment.
func safeVariables() []string {
	if runtime.GOOS == "windows" {
		return []string{"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
			"PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"}
	}
	return []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
}

// commandEnv returns the environment of a child process.
func commandEnv(extra []string) []string {
	env := []string{}
	for _, name := range safeVariables() {
		// A value that begins so is a function of the shell, which it would run.
		if value, ok := os.LookupEnv(name); ok && !strings.HasPrefix(value, "()") {
			env = append(env, name+"="+value)
		}
	}
	return append(env, extra...) // of two with one name, os/exec takes the last
}

// envValue returns the value of a variable, "" if it is not there.
func envValue(env []string, name string) (value string) {
	for _, entry := range env {
		key, text, _ := strings.Cut(entry, "=")
		if key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name) {
			value = text
		}
	}
	return value
}
