package program

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-dev/stowage/internal/wrap"
)

// ServeBuildInfo serves the program's version as a metric.
func ServeBuildInfo(registerer prometheus.Registerer) error {
	info := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stowage_build_info", Help: "Always 1. The labels have the program, its version, and that of Go.",
		ConstLabels: prometheus.Labels{"program": filepath.Base(os.Args[0]), "version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
	return wrap.Error(registerer.Register(info), "registering the metric of the version")
}
