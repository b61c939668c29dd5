package program

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// ServeMetrics serves the metrics that every program has: its version, and its effects.
func ServeMetrics(registerer prometheus.Registerer) error {
	info := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stowage_build_info", Help: "Always 1. The labels have the program, its version, and that of Go.",
		ConstLabels: prometheus.Labels{"program": filepath.Base(os.Args[0]), "version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
	return wrap.Error(errors.Join(registerer.Register(info), effect.Serve(registerer)), "registering the metrics of the program")
}
