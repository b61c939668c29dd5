// Package program is what every Stowage program has in common: its version, its
// logs, and where it serves metrics and probes.
//
// cmd/ uses it; nothing else does. It reads flags and makes values; it starts
// nothing.
package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// version is set at link time by the Makefile.
var version = "unknown"

// Options are the flags that every program has.
type Options struct {
	// Kubeconfig is a file to reach the API server with. Empty: the pod's own
	// service account.
	Kubeconfig string
	// MetricsAddress is where Prometheus metrics are served; "0" for nowhere.
	MetricsAddress string
	// MetricsSecure serves metrics over TLS, to clients that the API server
	// authenticates and lets read /metrics.
	MetricsSecure bool
	// ProbeAddress is where /healthz and /readyz are served; "0" for nowhere.
	ProbeAddress string
	// LogLevel is how much is logged: 0 what an operator wants to know, 1 what
	// a developer wants to know, 2 more.
	LogLevel int
	// LogFormat is json or console.
	LogFormat string

	showVersion bool
}

// AddFlags adds the flags of every program to a set. The ports keep two
// programs on one machine apart.
func (o *Options) AddFlags(flags *pflag.FlagSet, metricsPort, probePort int) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"),
		"Kubeconfig file to reach the API server with. Default: $KUBECONFIG, else the pod's service account.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", metricsPort),
		"Address to serve Prometheus metrics on, as host:port; 0 for nowhere.")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", false,
		"Serve metrics over TLS, to clients that RBAC lets GET /metrics.")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", probePort),
		"Address to serve /healthz and /readyz on, as host:port; 0 for nowhere.")
	flags.IntVar(&o.LogLevel, "log-level", 0, "How much to log: 0 for operators, 1 for developers, 2 for more.")
	flags.StringVar(&o.LogFormat, "log-format", "json", "Format of the logs: json or console.")
	flags.BoolVar(&o.showVersion, "version", false, "Print the version and exit.")
}

// Parse reads the command line. It prints and exits where --help or --version
// is asked for or a flag is wrong; about is the paragraph above the flags.
func (o *Options) Parse(flags *pflag.FlagSet, about string, arguments []string) {
	name := filepath.Base(os.Args[0])
	flags.SortFlags = false
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, "%s\n\nUsage:\n  %s [flags]\n\nFlags:\n%s", about, name, flags.FlagUsagesWrapped(100))
	}
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		os.Exit(0)
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && o.LogFormat != "json" && o.LogFormat != "console":
		err = fmt.Errorf("--log-format is json or console, not %q", o.LogFormat)
	}
	if err != nil {
		Fail(fmt.Errorf("%w: see %s --help", err, name))
	}
	if o.showVersion {
		fmt.Println(name, Version())
		os.Exit(0)
	}
}

// Fail prints an error for a person and exits with 1.
func Fail(err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	os.Exit(1)
}

// Logger makes the program's logger.
func (o *Options) Logger() logr.Logger {
	return lazily(ctrlzap.New(
		ctrlzap.UseDevMode(o.LogFormat == "console"),
		ctrlzap.Level(zapcore.Level(-o.LogLevel)),
		ctrlzap.StacktraceLevel(zapcore.PanicLevel),
	))
}

// Metrics says how the controller manager is to serve metrics.
func (o *Options) Metrics() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.MetricsAddress, SecureServing: o.MetricsSecure}
	if o.MetricsSecure {
		options.FilterProvider = ByOwnToken
	}
	return options
}

// Version is the program's version and that of the Go it was built with.
func Version() string {
	return version + " " + runtime.Version()
}
