package client

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/talaria-go/mcp/protocol"
)

const tasksExtension = "io.modelcontextprotocol/tasks"

// capabilities returns what the client declares.
func (o *Options) capabilities() protocol.ClientCapabilities {
	caps := o.Capabilities
	if o.OnRequest != nil {
		return caps
	}
	if o.Roots != nil {
		caps.Roots = &protocol.RootsCapability{ListChanged: true}
	}
	if o.Sample != nil && caps.Sampling == nil {
		caps.Sampling = &protocol.SamplingCapability{}
	}
	if o.Sample != nil && o.SampleTools {
		sampling := *caps.Sampling
		sampling.Tools = &struct{}{}
		caps.Sampling = &sampling
	}
	if o.Elicit != nil || o.ElicitURL != nil {
		var can protocol.ElicitationCapability
		if caps.Elicitation != nil {
			can = *caps.Elicitation
		}
		if o.Elicit != nil {
			can.Form = &struct{}{}
		}
		if o.ElicitURL != nil {
			can.URL = &struct{}{}
		}
		caps.Elicitation = &can
	}
	if o.Tasks != TasksOff {
		caps.Extensions = mergeRaw(caps.Extensions, map[string]json.RawMessage{tasksExtension: json.RawMessage("{}")})
	}
	return caps
}

// Capabilities returns what the client declares to servers.
func (c *Client) Capabilities() protocol.ClientCapabilities { return *c.caps.Load() }

// MergeCapabilities declares more to servers, and returns all of it. Nothing is
// taken away. Modern servers hear of it with the next request, legacy ones with
// the next session.
func (c *Client) MergeCapabilities(more protocol.ClientCapabilities) protocol.ClientCapabilities {
	c.mu.Lock()
	caps := *c.caps.Load()
	caps.Experimental = mergeRaw(caps.Experimental, more.Experimental)
	caps.Extensions = mergeRaw(caps.Extensions, more.Extensions)
	if more.Roots != nil {
		caps.Roots = &protocol.RootsCapability{ListChanged: more.Roots.ListChanged || caps.Roots != nil && caps.Roots.ListChanged}
	}
	if more.Sampling != nil {
		sampling := *more.Sampling
		if caps.Sampling != nil {
			sampling.Tools, sampling.Context = either(caps.Sampling.Tools, sampling.Tools), either(caps.Sampling.Context, sampling.Context)
		}
		caps.Sampling = &sampling
	}
	if more.Elicitation != nil {
		elicitation := *more.Elicitation
		if caps.Elicitation != nil {
			elicitation.Form, elicitation.URL = either(caps.Elicitation.Form, elicitation.Form), either(caps.Elicitation.URL, elicitation.URL)
		}
		caps.Elicitation = &elicitation
	}
	c.caps.Store(&caps)
	c.mu.Unlock()
	if conn := c.conn.Load(); conn != nil && conn.revision().Modern() {
		if err := conn.declare(conn.revision()); err != nil {
			c.opts.Logger.Warn().Err(err).Msg("the capabilities do not encode")
		}
	}
	return caps
}

func either(a, b *struct{}) *struct{} {
	if a != nil {
		return a
	}
	return b
}

func mergeRaw(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	if len(b) == 0 {
		return a
	}
	a = maps.Clone(a)
	if a == nil {
		a = map[string]json.RawMessage{}
	}
	maps.Copy(a, b)
	return a
}

// capabilitiesFor returns what the client declares in rev.
func (c *Client) capabilitiesFor(rev protocol.Revision) protocol.ClientCapabilities {
	all := c.Capabilities()
	if c.opts.OnRequest != nil {
		return all
	}
	caps := all.For(rev)
	if rev.Modern() {
		return caps
	}
	if all.Elicitation != nil && all.Elicitation.Form == nil && all.Elicitation.URL != nil && !rev.Has(protocol.ElicitModes) {
		caps.Elicitation = nil // of URLs alone, which rev does not have
	}
	if _, ok := caps.Extensions[tasksExtension]; ok {
		caps.Extensions = maps.Clone(caps.Extensions)
		delete(caps.Extensions, tasksExtension)
		if len(caps.Extensions) == 0 {
			caps.Extensions = nil
		}
	}
	return caps
}

// takesTasks tells whether the client has declared that calls may become tasks.
func (c *Client) takesTasks() bool {
	return c.Capabilities().Extensions[tasksExtension] != nil
}

// declare encodes what every request of a modern revision carries.
func (conn *connection) declare(rev protocol.Revision) error {
	c := conn.client
	info, err := json.Marshal(c.opts.Info.For(rev))
	if err != nil {
		return fmt.Errorf("Options.Info does not encode: %w", err)
	}
	caps, err := json.Marshal(c.capabilitiesFor(rev))
	if err != nil {
		return fmt.Errorf("Options.Capabilities do not encode: %w", err)
	}
	meta := fmt.Appendf(nil, `"%s":"%s","%s":%s,"%s":%s`, protocol.MetaVersion, rev,
		protocol.MetaClientInfo, info, protocol.MetaCapabilities, caps)
	conn.meta.Store(&meta)
	return nil
}
