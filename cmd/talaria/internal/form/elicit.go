package form

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/protocol"
)

// Elicit puts a server's question to a person: the message, the fields one by
// one, and whether to send what was filled in (client/elicitation).
func Elicit(asker Asker, params *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	if params.URL != "" || params.Mode == "url" {
		return visit(asker, params)
	}
	object, err := arguments.ReadObject(params.RequestedSchema)
	if err != nil {
		return nil, err
	}
	say(asker, "the server asks: ", params.Message)
	asker.Say("(Ctrl-D declines, Ctrl-C cancels)")
	for {
		content, err := Fill(asker, object, nil, true)
		if err != nil {
			return outcome(err)
		}
		if err := object.Check(content); err != nil {
			asker.Say("that does not fit: " + strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		question := "accept? [y]es, [d]ecline, [c]ancel: "
		if len(object.Fields) > 0 {
			asker.Say(console.Visible(string(content)))
			question = "send this? [y]es, [e]dit, [d]ecline, [c]ancel: "
		}
		choice, err := choose(asker, question, len(object.Fields) > 0)
		switch {
		case err != nil:
			return outcome(err)
		case choice == 'e':
			continue
		}
		return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: content}, nil
	}
}

// visit shows the address that a server wants a person to open. It opens
// nothing by itself: who asked is not known, and the address may be anything
// (client/elicitation, "URL Mode Elicitation").
func visit(asker Asker, params *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	say(asker, "the server asks you to visit a page: ", params.Message)
	asker.Say("  " + console.Line(params.URL))
	asker.Say("Look at the address before you open it. What you enter there goes to that site, not through this program.")
	if _, err := choose(asker, "will you open it? [y]es, [d]ecline, [c]ancel: ", false); err != nil {
		return outcome(err)
	}
	return &protocol.ElicitResult{Action: protocol.ElicitAccept}, nil
}

// choose returns 'y' or 'e'; declining and cancelling are errors.
func choose(asker Asker, question string, edit bool) (byte, error) {
	for {
		answer, err := asker.Ask(question, nil)
		if err != nil {
			return 0, err
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes", "accept":
			return 'y', nil
		case "e", "edit":
			if edit {
				return 'e', nil
			}
		case "d", "decline", "n", "no":
			return 0, ErrDecline
		case "c", "cancel":
			return 0, ErrCancel
		}
	}
}

// outcome is the answer of who gives none.
func outcome(err error) (*protocol.ElicitResult, error) {
	switch {
	case errors.Is(err, ErrDecline):
		return &protocol.ElicitResult{Action: protocol.ElicitDecline}, nil
	case errors.Is(err, ErrCancel):
		return &protocol.ElicitResult{Action: protocol.ElicitCancel}, nil
	}
	return nil, err
}

func say(asker Asker, head, text string) {
	for line := range strings.SplitSeq(console.Visible(text), "\n") {
		asker.Say(head + line)
		head = "  "
	}
}

// Answers answers questions without a person, from name=value pairs: forms whose
// fields they and the defaults fill are accepted, all else is cancelled.
type Answers []string

// Elicit answers one question. The note says what was done, for the log.
func (a Answers) Elicit(params *protocol.ElicitParams) (result *protocol.ElicitResult, note string) {
	cancel := &protocol.ElicitResult{Action: protocol.ElicitCancel}
	message := console.Line(params.Message)
	if params.URL != "" || params.Mode == "url" {
		return cancel, "the server asked to open " + console.Line(params.URL) + " (" + message + "); nobody is there to do that, so it was cancelled"
	}
	object, err := arguments.ReadObject(params.RequestedSchema)
	if err != nil {
		return cancel, "the server asked something that cannot be read: " + err.Error()
	}
	var list []string
	for _, f := range object.Fields {
		if len(f.Default) > 0 {
			if member, err := json.Marshal(map[string]json.RawMessage{f.Name: f.Default}); err == nil {
				list = append(list, string(member))
			}
		}
	}
	given := map[string][]string{}
	for _, pair := range a {
		name, _, _ := strings.Cut(pair, "=")
		name = strings.TrimSuffix(name, ":")
		given[name] = append(given[name], pair)
	}
	typed := []string{}
	for _, f := range object.Fields {
		typed = append(typed, given[f.Name]...)
	}
	values, err := object.Parse(typed)
	if err == nil {
		values, err = (&arguments.Object{}).Parse(append(list, string(values)))
	}
	if err == nil {
		err = object.Check(values)
	}
	if err != nil || len(a) == 0 {
		return cancel, "the server asked: " + message + "; nobody is there to answer, so it was cancelled. Answer with --answer name=value for each of: " +
			strings.Join(object.Names(), ", ")
	}
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: values}, "the server asked: " + message + "; answered " + string(values)
}
