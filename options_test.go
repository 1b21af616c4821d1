package mcp

import (
	"reflect"
	"testing"
	"time"
)

// Zero numbers stand for the defaults, and negative ones for no limit: each
// knob that a transport or a store does not complete itself is completed.
func TestOptionsComplete(t *testing.T) {
	// Those whose zero and negative values mean something below, as they are.
	passed := map[string]bool{
		"ConnectionsPerPrincipal": true, "SubscriptionsPerPrincipal": true, "SessionsPerPrincipal": true, "History": true, "TasksPerOwner": true, "TasksRunningPerOwner": true,
		"Call": true, "Read": true, "Write": true, "KeepAlive": true, "Session": true, "Stream": true,
	}
	var zero, none Options
	for _, group := range []reflect.Value{reflect.ValueOf(&none.Limits).Elem(), reflect.ValueOf(&none.Timeouts).Elem()} {
		for i := range group.NumField() {
			group.Field(i).SetInt(-1)
		}
	}
	zero.complete()
	none.complete()
	for _, group := range []string{"Limits", "Timeouts"} {
		standard, unlimited := reflect.ValueOf(zero).FieldByName(group), reflect.ValueOf(none).FieldByName(group)
		for i := range standard.NumField() {
			name, got, free := standard.Type().Field(i).Name, standard.Field(i).Int(), unlimited.Field(i).Int()
			switch {
			case passed[name] || name == "Grace":
			case got <= 0 || got == noLimit:
				t.Errorf("the default of %s.%s is %d", group, name, got)
			case free != noLimit && time.Duration(free) != noTimeout:
				t.Errorf("%s.%s = -1 stands for %d", group, name, free)
			}
		}
	}
	if zero.Timeouts.Grace != 10*time.Second || none.Timeouts.Grace >= 0 {
		t.Errorf("Grace: %v and %v", zero.Timeouts.Grace, none.Timeouts.Grace)
	}
}

// Lists may be kept for as long as ListTTL says, by the client alone unless
// they are public.
func TestListCache(t *testing.T) {
	for _, tt := range []struct {
		opts   Options
		ttl    time.Duration
		public bool
	}{
		{Options{}, 0, true}, // nobody keeps them
		{Options{ListTTL: time.Second}, time.Second, false},
		{Options{ListTTL: time.Second, ListPublic: true}, time.Second, true},
	} {
		if got := tt.opts.listCache(); got.TTL != tt.ttl || got.Public != tt.public {
			t.Errorf("%v, %v: %+v", tt.opts.ListTTL, tt.opts.ListPublic, got)
		}
	}
}
