package form

import (
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
			asker.Say(string(content))
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

// outcome is the answer of a person who gives none.
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
	for line := range strings.SplitSeq(console.Text(text), "\n") {
		asker.Say(head + line)
		head = "  "
	}
}
