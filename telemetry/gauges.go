package telemetry

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/talaria-go/mcp"
)

// gauges reports what s has at the moment, whenever metrics are read, until
// stop.
func gauges(meter metric.Meter, s *mcp.Server) (stop func(), err error) {
	var errs [5]error
	level := func(name, unit, description string) (metric.Int64ObservableUpDownCounter, error) {
		return meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	}
	var active, waiting, used, most metric.Int64ObservableUpDownCounter
	active, errs[0] = level(activeRequests, "{request}", "Requests under way, those included whose client has left.")
	waiting, errs[1] = level(waitingBytes, "By", "Messages that wait for a worker of their connection.")
	used, errs[2] = level(limitUsed, "{item}", "What there is of something that is limited.")
	most, errs[3] = level(limitMax, "{item}", "How much of it there may be.")
	var draining metric.Int64ObservableGauge
	draining, errs[4] = meter.Int64ObservableGauge(drainingState, metric.WithDescription("1 while the server drains, else 0."))
	if err = errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	var limits [4]metric.MeasurementOption
	for i, name := range []string{"sessions", "streams", "connections", "tasks"} {
		limits[i] = metric.WithAttributes(keyLimit.String(name))
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := s.Stats()
		o.ObserveInt64(active, int64(now.Requests.Now))
		o.ObserveInt64(waiting, int64(now.Waiting.Now))
		for i, load := range []mcp.Load{now.Sessions, now.Streams, now.Connections, now.Tasks} {
			o.ObserveInt64(used, int64(load.Now), limits[i])
			if load.Max > 0 {
				o.ObserveInt64(most, int64(load.Max), limits[i])
			}
		}
		drains := int64(0)
		if now.Draining {
			drains = 1
		}
		o.ObserveInt64(draining, drains)
		return nil
	}, active, waiting, used, most, draining)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { _ = registration.Unregister() }), nil
}
