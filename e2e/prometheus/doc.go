// Package prometheus holds a test of what Prometheus reads of a server with
// telemetry. It is a module of its own, because the exporter brings much that
// nothing else needs.
package prometheus
