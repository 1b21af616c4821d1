package telemetry

import (
	"go.opentelemetry.io/otel/metric"

	"github.com/talaria-go/mcp"
)

// Tell counts an event, as a server's observer does.
func Tell(meter metric.MeterProvider, all ...mcp.Event) error {
	c, err := newEvents(meter.Meter(scope))
	for _, e := range all {
		c.tell(e)
	}
	return err
}
