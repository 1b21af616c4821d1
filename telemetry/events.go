package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/talaria-go/mcp"
)

// events counts what belongs to no one message.
type events struct {
	sessions, streams, tasks metric.Float64Histogram
	starts, refused, store   metric.Int64Counter
	deliveries, webhooks     metric.Int64Counter
}

// newEvents makes the instruments.
func newEvents(meter metric.Meter) (*events, error) {
	var e events
	var errs [8]error
	counter := func(name, unit, description string) (c metric.Int64Counter, err error) {
		return meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	}
	e.sessions, errs[0] = duration(meter, sessionDuration, "How long a legacy session lasted.")
	e.streams, errs[1] = duration(meter, streamDuration, "How long a client listened by one stream.")
	e.tasks, errs[2] = duration(meter, taskDuration, "How long a task took.")
	e.starts, errs[3] = counter(taskStarts, "{task}", "Tasks that began to run, again after a replica was lost included.")
	e.refused, errs[4] = counter(refusedCount, "{refusal}", "Messages, connections and streams that were refused before anything of them ran.")
	e.store, errs[5] = counter(storeFailures, "{failure}", "Calls of the store that failed.")
	e.deliveries, errs[6] = counter(deliveryCount, "{event}", "Events that webhooks received, or that were given up.")
	e.webhooks, errs[7] = counter(webhookCount, "{subscription}", "Webhook subscriptions that began or ended.")
	return &e, errors.Join(errs[:]...)
}

// tell is the Event of the observer.
func (c *events) tell(e mcp.Event) {
	ctx := context.Background()
	via := network{via: e.Transport}
	var as []attribute.KeyValue
	if e.Frame != nil {
		ctx, via = e.Frame, networkOf(e.Frame)
		as = append(as, keyRevision.String(e.Frame.Revision().String()))
	}
	count := func(counter metric.Int64Counter, as ...attribute.KeyValue) {
		counter.Add(ctx, 1, metric.WithAttributes(as...))
	}
	record := func(h metric.Float64Histogram, as ...attribute.KeyValue) {
		h.Record(ctx, e.Duration.Seconds(), metric.WithAttributes(as...))
	}
	switch e.Kind {
	case "refused":
		count(c.refused, via.append([]attribute.KeyValue{keyRefusal.String(e.Reason)})...)
	case "session.ended":
		if as = via.append(as); e.Err != nil && e.Reason != "" {
			as = append(as, keyErrorType.String(e.Reason))
		}
		record(c.sessions, as...)
	case "stream.ended":
		record(c.streams, via.append([]attribute.KeyValue{keyStream.String(e.Reason)})...)
	case "task.started":
		count(c.starts, keyTool.String(e.Name), keyTaskStart.String(e.Reason))
	case "task.ended":
		record(c.tasks, keyTool.String(e.Name), keyTaskStatus.String(e.Reason))
	case "delivery.done":
		count(c.deliveries, keyEvent.String(e.Name), keyDelivery.String("done"))
	case "delivery.dropped":
		count(c.deliveries, keyEvent.String(e.Name), keyDelivery.String(e.Reason))
	case "webhook.opened":
		count(c.webhooks, keyEvent.String(e.Name), keyWebhook.String("opened"))
	case "webhook.ended":
		count(c.webhooks, keyEvent.String(e.Name), keyWebhook.String(e.Reason))
	case "store.failed":
		count(c.store, keyStore.String(e.Reason))
	}
}
