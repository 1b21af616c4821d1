package client

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

type pauses struct {
	Text time.Duration              `json:"text"`
	Unit time.Duration              `json:"unit" mcp:"unit=s"`
	ISO  *time.Duration             `json:"iso" jsonschema:"format=duration"`
	Opt  schema.Null[time.Duration] `json:"opt,omitzero"`
	Keys map[time.Duration][]stay   `json:"keys,omitempty"`
}

type stay struct {
	Of time.Duration `json:"of" mcp:"unit=ms"`
}

// A struct with durations goes out as arguments and comes back as a result.
func TestDurationsComeBack(t *testing.T) {
	hour := time.Hour
	want := pauses{90*time.Second + 1, time.Minute, &hour, schema.NullOf(time.Second), map[time.Duration][]stay{time.Hour: {{time.Second}}}}
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, nil)
		s.MustAdd(
			mcp.Tool("pauses", func(_ *mcp.Frame, in pauses) (pauses, error) {
				if !reflect.DeepEqual(in, want) {
					t.Errorf("the tool got %+v", in)
				}
				return in, nil
			}),
			mcp.Method("acme/pauses", func(_ *mcp.Frame, in pauses) (pauses, error) { return in, nil }),
		)
		c := connect(t, serving(t, s), only(rev))
		got, err := Call[pauses](t.Context(), c, "pauses", want)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Call: %+v, %v", got, err)
		}
		r, err := c.Call(t.Context(), "pauses", &want)
		if err != nil {
			t.Fatal(err)
		}
		var part struct{ ISO time.Duration }
		if err := r.Decode(&part); err != nil || part.ISO != hour {
			t.Errorf("Decode of a part: %+v, %v", part, err)
		}
		got = pauses{}
		if err := c.Request(t.Context(), "acme/pauses", want, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Request: %+v, %v", got, err)
		}
	})
}

// The answer to a form has the durations that the form asks for.
func TestDurationInAnswer(t *testing.T) {
	type form struct {
		Wait time.Duration `json:"wait"`
	}
	each(t, func(t *testing.T, rev protocol.Revision) {
		if !rev.Has(protocol.FeatureElicitation) {
			return
		}
		s := fixture(t, nil)
		s.MustAdd(mcp.Tool("howlong", func(f *mcp.Frame, _ struct{}) (string, error) {
			answer, err := mcp.Elicit[form](f, "wait", "How long?")
			return answer.Value.Wait.String(), err
		}))
		opts := only(rev)
		opts.Elicit = func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
			return Accept(form{90 * time.Second})
		}
		c := connect(t, serving(t, s), opts)
		if got, err := Call[string](t.Context(), c, "howlong", nil); err != nil || got != "1m30s" {
			t.Errorf("got %s, %v", got, err)
		}
	})
}
