package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// variables replaces the variables of a file: ${env:NAME}, ${NAME},
// ${NAME:-default}, ${input:id}, ${userHome}, ${workspaceFolder},
// ${workspaceFolderBasename}, ${pathSeparator} and ${/}. What takes their place
// is not looked at again: a value of the environment cannot name a variable. It
// is used by one goroutine, for as long as a file is read.
type variables struct {
	file      *File
	opts      Options
	workspace string
	answers   map[string]inputAnswer
}

// inputAnswer is what the user said to an input. The same one is used for every
// place that names the input, so a key is typed only once.
type inputAnswer struct {
	text string
	err  error
}

// newVariables returns the variables of a file. The workspace is the directory of
// the file, or the one above where an editor keeps the file in one of its own.
func newVariables(f *File, opts *Options) *variables {
	v := &variables{file: f, answers: map[string]inputAnswer{}}
	if opts != nil {
		v.opts = *opts
	}
	if v.opts.Env == nil {
		v.opts.Env = os.LookupEnv
	}
	v.workspace = v.opts.Workspace
	if v.workspace == "" {
		v.workspace = filepath.Dir(f.Path)
		if base := filepath.Base(v.workspace); base == ".vscode" || base == ".cursor" {
			v.workspace = filepath.Dir(v.workspace)
		}
		if absolute, err := filepath.Abs(v.workspace); err == nil {
			v.workspace = absolute
		}
	}
	return v
}

// The forms of a variable and of the name of an environment variable.
var (
	variable = regexp.MustCompile(`\$\{[^{}]*\}`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces the variables in text. It returns every problem, joined.
func (v *variables) expand(text string) (string, error) {
	var faults []error
	out := variable.ReplaceAllStringFunc(text, func(whole string) string {
		value, err := v.value(whole[2 : len(whole)-1])
		if errors.Is(err, errNoVariable) {
			return whole
		}
		if err != nil {
			faults = append(faults, err)
		}
		return value
	})
	return out, errors.Join(faults...)
}

// errNoVariable is for what only looks like a variable; it stays as it is.
var errNoVariable = errors.New("it is not a variable")

// value returns what stands for a variable. The error of one that is missing says
// what to write in its place.
func (v *variables) value(name string) (string, error) {
	switch name {
	case "userHome":
		return os.UserHomeDir()
	case "workspaceFolder":
		return v.workspace, nil
	case "workspaceFolderBasename":
		return filepath.Base(v.workspace), nil
	case "pathSeparator", "/":
		return string(filepath.Separator), nil
	}
	if id, ok := strings.CutPrefix(name, "input:"); ok {
		return v.input(id)
	}
	variable, inEnv := strings.CutPrefix(name, "env:")
	variable, fallback, hasFallback := strings.Cut(variable, ":-")
	if !envName.MatchString(variable) {
		if kind, _, ok := strings.Cut(name, ":"); ok && envName.MatchString(kind) {
			return "", fmt.Errorf("${%s} is of a kind that is not known here; there are ${env:NAME}, ${input:id} and ${workspaceFolder}", name)
		}
		return "", errNoVariable
	}
	if value, ok := v.opts.Env(variable); ok && (value != "" || !hasFallback) {
		return value, nil
	}
	if hasFallback {
		return fallback, nil
	}
	if inEnv {
		return "", fmt.Errorf("the environment has no %s; set it, or write ${env:%s:-default}", variable, variable)
	}
	return "", fmt.Errorf("the environment has no %s; set it, or write ${%s:-default}", variable, variable)
}

// input asks the user, once for each id. A refusal is kept as well: the next
// server does not ask for the same input.
func (v *variables) input(id string) (string, error) {
	if known, ok := v.answers[id]; ok {
		return known.text, known.err
	}
	var answer inputAnswer
	i := slices.IndexFunc(v.file.Inputs, func(in Input) bool { return in.ID == id })
	switch {
	case i < 0:
		answer.err = fmt.Errorf("the file has no input %q", id)
	case v.opts.Input != nil:
		if answer.text, answer.err = v.opts.Input(v.file.Inputs[i]); answer.err != nil {
			answer.err = fmt.Errorf("input %q: %w", id, answer.err)
		}
	case v.file.Inputs[i].Default != "":
		answer.text = v.file.Inputs[i].Default
	default:
		answer.err = fmt.Errorf("input %q has no default, and there is no user to ask for it", id)
	}
	v.answers[id] = answer
	return answer.text, answer.err
}
