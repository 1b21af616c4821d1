package mcp

import (
	"mime"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// resourceSettings are what options say of resources alone.
type resourceSettings struct {
	name        string
	mime        string
	size        *int64
	maxSize     int64
	annotations *protocol.Annotations
	cache       protocol.Cache
	unconfined  []string
}

// Name is what programs call a resource; its URI unless told.
func Name(text string) ComponentOption {
	return func(set *settings) {
		set.use("Name", resourceKind|templateKind)
		set.name = text
	}
}

// MIME is the type of a resource's contents, for those that do not name their
// own. The default is text/plain for text, application/octet-stream for bytes
// and application/json for other Go values.
func MIME(mediaType string) ComponentOption {
	return func(set *settings) {
		set.use("MIME", resourceKind|templateKind)
		if _, _, err := mime.ParseMediaType(mediaType); err != nil {
			set.fault("MIME(%q): %v; write it as type/subtype", mediaType, err)
		}
		set.mime = mediaType
	}
}

// Size tells how many bytes a resource has.
func Size(bytes int64) ComponentOption {
	return func(set *settings) {
		set.use("Size", resourceKind)
		if bytes < 0 {
			set.fault("Size(%d) must not be negative", bytes)
		}
		set.size = &bytes
	}
}

// MaxSize limits how many bytes File and Directory read of one file; the
// default is DefaultMaxSize. Larger files are refused when they are read.
func MaxSize(bytes int64) ComponentOption {
	return func(set *settings) {
		set.use("MaxSize", resourceKind|templateKind)
		if bytes <= 0 {
			set.fault("MaxSize(%d) must be positive", bytes)
		}
		set.maxSize = bytes
	}
}

// Annotated tells clients whom a resource is for, how much it matters and when
// it changed.
func Annotated(a Annotations) ComponentOption {
	return func(set *settings) {
		set.use("Annotated", resourceKind|templateKind)
		if p := a.Priority; p != nil && !(*p >= 0 && *p <= 1) {
			set.fault("Annotated: Priority is %v; it must be between 0 and 1", *p)
		}
		for _, r := range a.Audience {
			if r != RoleUser && r != RoleAssistant {
				set.fault("Annotated: Audience has %q; use RoleUser and RoleAssistant", r)
			}
		}
		set.annotations = &a
	}
}

// Cache says how long, and for whom, clients may keep what they read of a
// resource. The default is not at all, and private. Use CachePublic only for
// what everybody may see.
func Cache(ttl time.Duration, scope CacheScope) ComponentOption {
	return func(set *settings) {
		set.use("Cache", resourceKind|templateKind)
		if ttl < 0 {
			set.fault("Cache(%v, …) must not be negative", ttl)
		}
		if scope != CachePublic && scope != CachePrivate {
			set.fault("Cache: the scope is %q; use CachePublic or CachePrivate", scope)
		}
		set.cache = protocol.Cache{TTLMs: ttl.Milliseconds(), Scope: scope}
	}
}

// Unconfined lets template variables have values that could lead out of a
// directory, such as "../x", "/etc" or "C:\x". They are refused otherwise. Use
// it for variables that never become part of a path.
func Unconfined(variables ...string) ComponentOption {
	return func(set *settings) {
		set.use("Unconfined", templateKind)
		set.unconfined = append(set.unconfined, variables...)
	}
}

// kind is a set of kinds of components.
type kind uint8

const (
	toolKind kind = 1 << iota
	resourceKind
	templateKind
	promptKind
	methodKind
)

// use is an option that was given, and what it is for.
type use struct {
	option string
	kinds  kind
}

// use notes that an option was given.
func (set *settings) use(option string, kinds kind) { set.used = append(set.used, use{option, kinds}) }

// misused returns the faults of options that mean nothing for a kind.
func (set *settings) misused(k kind, name string) (faults []string) {
	for _, u := range set.used {
		if u.kinds&k == 0 {
			faults = append(faults, "the option "+u.option+" is not for "+name+"; leave it out")
		}
	}
	return faults
}
