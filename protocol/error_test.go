package protocol

import (
	"testing"
)

func TestErrorText(t *testing.T) {
	for _, tt := range []struct {
		err  *Error
		want string
	}{
		{&Error{Code: CodeInvalidParams, Message: "a is missing"}, "Invalid params: a is missing"},
		{&Error{Code: CodeMethodNotFound, Message: "Method not found: x"}, "Method not found: x"},
		{&Error{Code: CodeInternal}, "Internal error"},
		{&Error{Code: 4711, Message: "no"}, "error 4711: no"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
